//! One ELF file's headers, read with forgiveness: what can be read is used, what cannot becomes a problem.
//!
//! [`Image`] answers questions about sections and notes. It holds no symbols and no DWARF; those are built
//! lazily by [`crate::symtab`] and [`crate::dwarf`] from the sections it hands out.
//!
//! Never panics on foreign bytes, and never allocates more than a small multiple of the file's size: section
//! sizes are checked against the file by `object`, decompressed sizes against [`INFLATION_MAX`].

use object::elf::{self, FileHeader64, ProgramHeader64, SectionHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, SectionTable};
use object::{CompressedData, CompressionFormat, LittleEndian as LE};

use crate::address::{AddrRange, FileOffset, ObjectAddr};
use crate::bytes::Arena;
use crate::segments::{Segment, Segments};

/// A compressed section may claim at most this many times its own size (zlib's limit is 1032).
const INFLATION_MAX: u64 = 1100;

/// Why a file cannot be opened at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// Not ELF, or cut off within its header.
    #[error("not an ELF file: {0}")]
    NotElf(String),
    /// An ELF file of another machine.
    #[error("ELF machine {machine}, need 62 (x86-64)")]
    Machine {
        /// Its `e_machine`.
        machine: u16,
    },
    /// An object file before linking: its addresses mean nothing yet.
    #[error("ELF type {kind}, need 2 (executable) or 3 (shared object)")]
    Unlinked {
        /// Its `e_type`.
        kind: u16,
    },
}

/// The linker's identity of a file (`.note.gnu.build-id`).
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BuildId(pub Vec<u8>);

impl std::fmt::Display for BuildId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

pub(crate) struct Image<'a> {
    data: &'a [u8],
    header: &'a FileHeader64<LE>,
    programs: &'a [ProgramHeader64<LE>],
    sections: SectionTable<'a, FileHeader64<LE>>,
    pub(crate) segments: Segments,
    pub(crate) problems: Vec<String>,
}

impl<'a> Image<'a> {
    /// Reads the headers of a linked file (or of its debug file).
    pub(crate) fn open(data: &'a [u8]) -> Result<Self, OpenError> {
        let image = Image::open_any(data)?;
        let kind = image.header.e_type.get(LE);
        if kind != elf::ET_EXEC && kind != elf::ET_DYN {
            return Err(OpenError::Unlinked { kind: kind.0 });
        }
        Ok(image)
    }

    /// Reads the headers of any x86-64 ELF file; `.dwo` files are unlinked objects.
    pub(crate) fn open_any(data: &'a [u8]) -> Result<Self, OpenError> {
        let header = FileHeader64::<LE>::parse(data).map_err(|e| OpenError::NotElf(e.to_string()))?;
        if !header.is_little_endian() {
            return Err(OpenError::NotElf("big-endian".into()));
        }
        let machine = header.e_machine.get(LE);
        if machine != elf::EM_X86_64 {
            return Err(OpenError::Machine { machine: machine.0 });
        }
        let mut problems = Vec::new();
        let programs = header.program_headers(LE, data).unwrap_or_else(|e| {
            problems.push(format!("program headers unreadable: {e}"));
            &[]
        });
        let sections = header.sections(LE, data).unwrap_or_else(|e| {
            problems.push(format!("section headers unreadable: {e}"));
            SectionTable::default()
        });
        let segments = programs
            .iter()
            .filter(|p| p.p_type(LE) == elf::PT_LOAD)
            .map(|p| Segment {
                address: ObjectAddr(p.p_vaddr(LE)),
                offset: FileOffset(p.p_offset(LE)),
                file_bytes: p.p_filesz(LE),
                memory_bytes: p.p_memsz(LE),
                executable: p.p_flags(LE).0 & elf::PF_X.0 != 0,
            })
            .collect();
        Ok(Image { data, header, programs, sections, segments: Segments(segments), problems })
    }

    pub(crate) fn entry(&self) -> ObjectAddr {
        ObjectAddr(self.header.e_entry.get(LE))
    }

    pub(crate) fn is_position_independent(&self) -> bool {
        self.header.e_type.get(LE) == elf::ET_DYN
    }

    pub(crate) fn build_id(&self) -> Option<BuildId> {
        let in_segments = self.programs.iter().filter_map(|p| p.notes(LE, self.data).ok().flatten());
        let in_sections = self.sections.iter().filter_map(|s| s.notes(LE, self.data).ok().flatten());
        for mut notes in in_segments.chain(in_sections) {
            while let Ok(Some(note)) = notes.next() {
                if note.name() == elf::ELF_NOTE_GNU && note.n_type(LE).0 == elf::NT_GNU_BUILD_ID.0 {
                    return Some(BuildId(note.desc().to_vec())).filter(|id| !id.0.is_empty());
                }
            }
        }
        None
    }

    /// A section's bytes as stored; nothing for a section that is missing, empty or only a promise (NOBITS,
    /// as most sections of a debug file).
    pub(crate) fn section(&self, name: &str) -> Option<&'a [u8]> {
        let (_, header) = self.sections.section_by_name(LE, name.as_bytes())?;
        header.data(LE, self.data).ok().filter(|d| !d.is_empty())
    }

    /// A section's bytes, decompressed into the arena if need be. Also finds the old `.zdebug_*` spelling.
    pub(crate) fn debug_section(&self, name: &str, arena: &'a Arena) -> Option<&'a [u8]> {
        let Some((_, header)) = self.sections.section_by_name(LE, name.as_bytes()) else {
            let old = name.strip_prefix(".debug_")?;
            let data = self.section(&format!(".zdebug_{old}"))?;
            let size = u64::from_be_bytes(data.strip_prefix(b"ZLIB")?.get(..8)?.try_into().ok()?);
            return inflate(CompressionFormat::Zlib, data.get(12..)?, size, arena);
        };
        let Some((compression, offset, size)) = header.compression(LE, self.data).ok()? else {
            return header.data(LE, self.data).ok().filter(|d| !d.is_empty());
        };
        let start = usize::try_from(offset).ok()?;
        let packed = self.data.get(start..start.checked_add(usize::try_from(size).ok()?)?)?;
        let format = match compression.ch_type.get(LE) {
            elf::ELFCOMPRESS_ZLIB => CompressionFormat::Zlib,
            elf::ELFCOMPRESS_ZSTD => CompressionFormat::Zstandard,
            _ => return None,
        };
        inflate(format, packed, compression.ch_size.get(LE), arena)
    }

    /// All sections with their names.
    pub(crate) fn sections(&self) -> impl Iterator<Item = (&'a [u8], &'a SectionHeader64<LE>)> + '_ {
        self.sections.iter().map(|s| (self.sections.section_name(LE, s).unwrap_or_default(), s))
    }

    pub(crate) fn section_table(&self) -> &SectionTable<'a, FileHeader64<LE>> {
        &self.sections
    }

    pub(crate) fn data(&self) -> &'a [u8] {
        self.data
    }

    /// Where code lies: executable sections, or executable segments when the section table is gone.
    pub(crate) fn code(&self) -> Vec<AddrRange> {
        let mut code: Vec<AddrRange> = self
            .sections
            .iter()
            .filter(|s| s.sh_flags(LE).0 & elf::SHF_EXECINSTR.0 != 0 && s.sh_addr(LE) != 0)
            .map(|s| AddrRange::new(s.sh_addr(LE), s.sh_addr(LE).saturating_add(s.sh_size(LE))))
            .collect();
        if code.is_empty() {
            let executable = self.segments.iter().filter(|s| s.executable);
            code.extend(
                executable.map(|s| AddrRange::new(s.address.0, s.address.0.saturating_add(s.memory_bytes))),
            );
        }
        code.sort_unstable();
        code
    }

    /// The bytes from an address to the end of its segment's file contents.
    pub(crate) fn bytes_at(&self, addr: ObjectAddr) -> Option<&'a [u8]> {
        let segment = self
            .segments
            .iter()
            .find(|s| addr.0.checked_sub(s.address.0).is_some_and(|d| d < s.file_bytes))?;
        let start = usize::try_from(self.segments.offset_of(addr)?.0).ok()?;
        let end = usize::try_from(segment.offset.0.saturating_add(segment.file_bytes)).ok()?;
        self.data.get(start..end.min(self.data.len()))
    }

    /// Address and bytes of `.eh_frame`, found through the program headers when the section table is gone.
    pub(crate) fn eh_frame(&self) -> Option<(u64, &'a [u8])> {
        if let Some((_, header)) = self.sections.section_by_name(LE, b".eh_frame")
            && let Ok(data) = header.data(LE, self.data)
            && !data.is_empty()
        {
            return Some((header.sh_addr(LE), data));
        }
        let header = self.programs.iter().find(|p| p.p_type(LE) == elf::PT_GNU_EH_FRAME)?;
        let (at, data) = (header.p_vaddr(LE), header.data(LE, self.data).ok()?);
        let bases = gimli::BaseAddresses::default().set_eh_frame_hdr(at);
        let parsed = gimli::EhFrameHdr::new(data, gimli::LittleEndian).parse(&bases, 8).ok()?;
        let start = parsed.eh_frame_ptr().direct().ok()?;
        Some((start, self.bytes_at(ObjectAddr(start))?))
    }

    /// `.gnu_debuglink`: name and CRC-32 of the debug file.
    pub(crate) fn debug_link(&self) -> Option<(&'a [u8], u32)> {
        let data = self.section(".gnu_debuglink")?;
        let len = data.iter().position(|b| *b == 0).filter(|len| *len > 0)?;
        let crc = data.get(len.checked_add(4)? & !3..)?.get(..4)?;
        Some((&data[..len], u32::from_le_bytes(crc.try_into().ok()?)))
    }

    /// `.gnu_debugaltlink`: path and build id of the file that dwz moved shared DWARF to.
    pub(crate) fn debug_alt_link(&self) -> Option<(&'a [u8], BuildId)> {
        let data = self.section(".gnu_debugaltlink")?;
        let len = data.iter().position(|b| *b == 0).filter(|len| *len > 0)?;
        Some((&data[..len], BuildId(data[len + 1..].to_vec())))
    }
}

fn inflate<'a>(format: CompressionFormat, packed: &'a [u8], size: u64, arena: &'a Arena) -> Option<&'a [u8]> {
    if size > (packed.len() as u64).saturating_mul(INFLATION_MAX) {
        return None;
    }
    let data = CompressedData { format, data: packed, uncompressed_size: size }.decompress().ok()?;
    Some(arena.push(data.into_owned().into()))
}
