//! Where the loader puts the bytes of an ELF file: file offset to address and back.
//!
//! One segment maps file bytes `[p_offset, p_offset + p_filesz)` to addresses `[p_vaddr, p_vaddr + p_filesz)`.
//! The kernel maps whole pages, so a mapping starts and ends up to a page outside its segment, and one file
//! page may be mapped twice, by two segments, at different biases. The rules here are therefore:
//! - `address = offset - p_offset + p_vaddr` with the segment that the mapping was made for, never with the
//!   first segment's difference (wrong with lld and mold, where the difference grows from segment to segment);
//! - of the segments whose pages hold an offset, the one that holds the offset itself wins, then an executable
//!   one.

use crate::address::{AddrRange, FileOffset, ObjectAddr};

const PAGE_BYTES: u64 = 4096;

/// One `PT_LOAD` program header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its first address.
    pub address: ObjectAddr,
    /// Its first byte in the file.
    pub offset: FileOffset,
    /// How many bytes the file holds; the rest is zero.
    pub file_bytes: u64,
    /// How many bytes it takes in memory.
    pub memory_bytes: u64,
    /// Whether it may be executed.
    pub executable: bool,
}

impl Segment {
    fn holds_offset(&self, offset: u64) -> bool {
        offset.checked_sub(self.offset.0).is_some_and(|d| d < self.file_bytes)
    }

    fn page_holds_offset(&self, offset: u64) -> bool {
        let start = self.offset.0 & !(PAGE_BYTES - 1);
        let end = self.offset.0.saturating_add(self.file_bytes).saturating_add(PAGE_BYTES - 1);
        self.file_bytes > 0 && start <= offset && offset < end & !(PAGE_BYTES - 1)
    }
}

/// The loadable segments of one file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments(pub(crate) Vec<Segment>);

impl Segments {
    /// The segments, in the order of the file.
    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.0.iter()
    }

    /// The address of a file byte, as a mapping with the given permission would show it.
    pub fn address_of(&self, offset: FileOffset, executable: bool) -> Option<ObjectAddr> {
        let best = self
            .0
            .iter()
            .filter(|s| s.page_holds_offset(offset.0))
            .max_by_key(|s| (s.executable == executable, s.holds_offset(offset.0), s.executable))?;
        Some(ObjectAddr(offset.0.wrapping_sub(best.offset.0).wrapping_add(best.address.0)))
    }

    /// The file byte at an address; nothing for zero-filled memory and for addresses outside.
    pub fn offset_of(&self, addr: ObjectAddr) -> Option<FileOffset> {
        self.0.iter().find_map(|s| {
            let delta = addr.0.checked_sub(s.address.0).filter(|d| *d < s.file_bytes)?;
            s.offset.0.checked_add(delta).map(FileOffset)
        })
    }

    /// The addresses from the first to the last one loaded.
    pub fn span(&self) -> Option<AddrRange> {
        let start = self.0.iter().map(|s| s.address).min()?;
        let end = self.0.iter().map(|s| s.address.0.saturating_add(s.memory_bytes)).max()?;
        Some(AddrRange { start, end: ObjectAddr(end) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(address: u64, offset: u64, bytes: u64, executable: bool) -> Segment {
        Segment {
            address: ObjectAddr(address),
            offset: FileOffset(offset),
            file_bytes: bytes,
            memory_bytes: bytes,
            executable,
        }
    }

    /// The layout of rust-lld: text at offset 0x18130 is linked at 0x19130, and its first page also ends the
    /// read-only segment.
    #[test]
    fn lld_text_is_not_at_the_first_segments_bias() {
        let s = Segments(vec![segment(0, 0, 0x18130, false), segment(0x19130, 0x18130, 0x40000, true)]);
        assert_eq!(s.address_of(FileOffset(0x18200), true), Some(ObjectAddr(0x19200)));
        assert_eq!(s.address_of(FileOffset(0x18010), false), Some(ObjectAddr(0x18010)));
        // The head of the text mapping's first page belongs to the other segment's bytes.
        assert_eq!(s.address_of(FileOffset(0x18010), true), Some(ObjectAddr(0x19010)));
        assert_eq!(s.offset_of(ObjectAddr(0x19200)), Some(FileOffset(0x18200)));
        assert_eq!(s.offset_of(ObjectAddr(0x18900)), None);
    }

    #[test]
    fn non_pie_and_extremes() {
        let s = Segments(vec![segment(0x400000, 0, u64::MAX, true)]);
        assert_eq!(s.address_of(FileOffset(0x1234), true), Some(ObjectAddr(0x401234)));
        assert_eq!(Segments::default().address_of(FileOffset(0), true), None);
        assert_eq!(Segments::default().span(), None);
    }
}
