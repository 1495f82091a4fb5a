//! Laying a blob out: a position-independent static executable becomes bytes for a known address.

use crate::error::LaunchError;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object};
use std::borrow::Cow;
use std::ops::Range;

/// A blob ready to be written to its address.
pub(crate) struct Image<'a> {
    /// What to write: offsets from the base, and bytes. What lies between is zero.
    pub segments: Vec<Segment<'a>>,
    /// Entry, as an offset from the base.
    pub entry: u64,
}

/// Bytes of an image: the blob's own, but where they depend on the base. (Copying all of them took one of the fifteen
/// milliseconds that a run of `true` takes.)
pub(crate) struct Segment<'a> {
    /// From the base.
    pub offset: u64,
    pub bytes: Cow<'a, [u8]>,
    /// Where in the blob they come from.
    source: u64,
    pub writable: bool,
    pub executable: bool,
}

impl Segment<'_> {
    /// The whole pages that it lies in, from the base: start and length.
    pub(crate) fn pages(&self) -> (u64, u64) {
        let start = self.offset & !0xfff;
        (start, (self.offset + self.bytes.len() as u64).next_multiple_of(4096) - start)
    }

    /// Where these pages begin in the blob, if mapping them from there is as good as writing the bytes.
    pub(crate) fn as_in_blob(&self) -> Option<u64> {
        let same = matches!(self.bytes, Cow::Borrowed(_)) && !self.writable;
        (same && self.source % 4096 == self.offset % 4096).then_some(self.source & !0xfff)
    }

    /// Where in `bytes` the eight bytes at `offset` of the image are.
    fn word(&self, offset: u64) -> Option<Range<usize>> {
        let at = usize::try_from(offset.checked_sub(self.offset)?).ok()?;
        (at + 8 <= self.bytes.len()).then_some(at..at + 8)
    }
}

fn bad(what: &str) -> LaunchError {
    LaunchError::Bug(format!("embedded runtime: {what}"))
}

/// Length of the image in whole pages.
pub(crate) fn length(blob: &[u8]) -> Result<u64, LaunchError> {
    let file = ElfFile64::<LittleEndian>::parse(blob).map_err(|e| bad(&e.to_string()))?;
    let le = LittleEndian;
    let end = file
        .elf_program_headers()
        .iter()
        .filter(|p| p.p_type(le) == elf::PT_LOAD)
        .map(|p| p.p_vaddr(le) + p.p_memsz(le))
        .max()
        .ok_or_else(|| bad("nothing to load"))?;
    Ok(end.next_multiple_of(4096))
}

/// Lays `blob` out for `base`.
pub(crate) fn layout(blob: &[u8], base: u64) -> Result<Image<'_>, LaunchError> {
    let le = LittleEndian;
    let file = ElfFile64::<LittleEndian>::parse(blob).map_err(|e| bad(&e.to_string()))?;
    let mut segments = Vec::new();
    let mut relocations = (0u64, 0u64);
    for p in file.elf_program_headers() {
        match p.p_type(le) {
            elf::PT_LOAD => {
                let bytes = p.data(le, blob).map_err(|()| bad("segment out of file"))?.into();
                let flag = |f: elf::ProgramFlags| p.p_flags(le).0 & f.0 != 0;
                segments.push(Segment {
                    offset: p.p_vaddr(le),
                    bytes,
                    source: p.p_offset(le),
                    writable: flag(elf::PF_W),
                    executable: flag(elf::PF_X),
                });
            }
            elf::PT_DYNAMIC => {
                let dynamic = p.dynamic(le, blob).map_err(|e| bad(&e.to_string()))?.unwrap_or(&[]);
                for d in dynamic {
                    match d.d_tag(le) {
                        elf::DT_RELA => relocations.0 = d.d_val(le),
                        elf::DT_RELASZ => relocations.1 = d.d_val(le),
                        _ => {}
                    }
                }
            }
            elf::PT_INTERP => return Err(bad("needs an interpreter")),
            _ => {}
        }
    }
    for i in 0..relocations.1 / 24 {
        let at = relocations.0 + i * 24;
        let (offset, info, addend) =
            (word(&segments, at)?, word(&segments, at + 8)?, word(&segments, at + 16)?);
        if info != u64::from(elf::R_X86_64_RELATIVE.0) {
            return Err(bad("relocation other than RELATIVE"));
        }
        let (segment, place) = find(&mut segments, offset)?;
        segment.bytes.to_mut()[place].copy_from_slice(&base.wrapping_add(addend).to_le_bytes());
    }
    let entry = file.elf_header().e_entry(le);
    debug_assert!(file.entry() == entry);
    Ok(Image { segments, entry })
}

/// The segment that holds the eight bytes at `offset`, and where.
fn find<'s, 'a>(
    segments: &'s mut [Segment<'a>],
    offset: u64,
) -> Result<(&'s mut Segment<'a>, Range<usize>), LaunchError> {
    let found = segments.iter_mut().find_map(|s| s.word(offset).map(|place| (s, place)));
    found.ok_or_else(|| bad("a relocation outside of what is loaded"))
}

fn word(segments: &[Segment<'_>], offset: u64) -> Result<u64, LaunchError> {
    let found = segments.iter().find_map(|s| s.word(offset).map(|place| &s.bytes[place]));
    let bytes = found.ok_or_else(|| bad("relocations outside of what is loaded"))?;
    Ok(u64::from_le_bytes(bytes.try_into().expect("8 bytes")))
}
