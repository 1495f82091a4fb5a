//! Laying a blob out: a position-independent static executable becomes bytes for a known address.

use crate::error::LaunchError;
use object::elf;
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{LittleEndian, Object};

/// A blob ready to be written to its address.
pub(crate) struct Image {
    /// Bytes from the base on.
    pub bytes: Vec<u8>,
    /// Entry, as an offset from the base.
    pub entry: u64,
    /// Executable parts: (offset, length), whole pages.
    pub executable: Vec<(u64, u64)>,
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
pub(crate) fn layout(blob: &[u8], base: u64) -> Result<Image, LaunchError> {
    let le = LittleEndian;
    let file = ElfFile64::<LittleEndian>::parse(blob).map_err(|e| bad(&e.to_string()))?;
    let mut bytes = vec![0u8; length(blob)? as usize];
    let mut executable = Vec::new();
    let mut relocations = (0u64, 0u64);
    for p in file.elf_program_headers() {
        match p.p_type(le) {
            elf::PT_LOAD => {
                let data = p.data(le, blob).map_err(|()| bad("segment out of file"))?;
                let at = p.p_vaddr(le) as usize;
                bytes[at..at + data.len()].copy_from_slice(data);
                if p.p_flags(le).0 & elf::PF_X.0 != 0 {
                    let start = p.p_vaddr(le) & !0xfff;
                    let end = (p.p_vaddr(le) + p.p_memsz(le)).next_multiple_of(4096);
                    executable.push((start, end - start));
                }
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
        let at = (relocations.0 + i * 24) as usize;
        let word = |k: usize| u64::from_le_bytes(bytes[at + k..at + k + 8].try_into().expect("8 bytes"));
        let (offset, info, addend) = (word(0) as usize, word(8), word(16));
        if info != u64::from(elf::R_X86_64_RELATIVE.0) {
            return Err(bad("relocation other than RELATIVE"));
        }
        bytes[offset..offset + 8].copy_from_slice(&base.wrapping_add(addend).to_le_bytes());
    }
    let entry = file.elf_header().e_entry(le);
    debug_assert!(file.entry() == entry);
    Ok(Image { bytes, entry, executable })
}
