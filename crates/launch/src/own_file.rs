//! The file of this executable, for mapping parts of it into other processes.
//!
//! What is mapped need not be copied: the kernel has the file's pages already. (Writing the engine's image into the
//! program took one of the fifteen milliseconds that a run of `true` takes.)

use object::LittleEndian as LE;
use object::elf::{self, ProgramHeader64};
use object::read::elf::ProgramHeader;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Where in this executable's file `bytes` lie, if they are a part of it that begins on a page: an offset.
///
/// Compares the first page, so an executable that was started through the dynamic linker (whose own file is then the
/// one that the kernel names) has none.
pub(crate) fn offset_of(bytes: &[u8]) -> Option<u64> {
    let first = bytes.get(..4096)?;
    let (headers, at) = own_headers()?;
    let offset = offset_in(headers, at, bytes.as_ptr() as u64)?;
    let mut found = [0; 4096];
    File::open("/proc/self/exe").ok()?.read_exact_at(&mut found, offset).ok()?;
    (offset % 4096 == 0 && found == first).then_some(offset)
}

/// The program headers that the kernel loaded us by, and where they lie. (The list of our mappings says the same, and
/// takes the kernel longer to print than all else here.)
fn own_headers() -> Option<(&'static [ProgramHeader64<LE>], u64)> {
    // SAFETY: reads the auxiliary vector.
    let entry = |kind| unsafe { libc::getauxval(kind) };
    let (at, count, bytes) = (entry(libc::AT_PHDR), entry(libc::AT_PHNUM), entry(libc::AT_PHENT));
    let aligned = at.is_multiple_of(align_of::<ProgramHeader64<LE>>() as u64);
    if at == 0 || !aligned || bytes != size_of::<ProgramHeader64<LE>>() as u64 {
        return None;
    }
    // SAFETY:
    // - The kernel or the dynamic linker says that so many headers of that size lie there, in what it loaded.
    // - They are never unmapped or written: they belong to the executable itself.
    // - They are aligned (checked above), and the type is valid for any bytes.
    Some((unsafe { std::slice::from_raw_parts(at as *const _, count as usize) }, at))
}

/// The file offset of `address`, if it is in something that these program headers, which lie at `at`, load from the file.
fn offset_in(headers: &[ProgramHeader64<LE>], at: u64, address: u64) -> Option<u64> {
    let own = headers.iter().find(|h| h.p_type(LE) == elf::PT_PHDR)?;
    let there = address.wrapping_sub(at.wrapping_sub(own.p_vaddr(LE)));
    let segment = headers.iter().find(|h| {
        let into = there.checked_sub(h.p_vaddr(LE));
        h.p_type(LE) == elf::PT_LOAD && into.is_some_and(|into| into < h.p_filesz(LE))
    })?;
    segment.p_offset(LE).checked_add(there - segment.p_vaddr(LE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C, align(4096))]
    struct Page([u8; 4096]);
    static PAGE: Page = Page([0x5a; 4096]);

    #[test]
    fn what_the_executable_holds_has_an_offset() {
        let offset = offset_of(&PAGE.0).expect("part of the file");
        let mut found = [0; 4096];
        File::open("/proc/self/exe").unwrap().read_exact_at(&mut found, offset).unwrap();
        assert_eq!(found, PAGE.0);
    }

    #[test]
    fn what_it_does_not_hold_has_none() {
        let copy = vec![0x5a; 8192];
        assert_eq!(offset_of(&copy), None);
        assert_eq!(offset_of(&PAGE.0[..100]), None);
        assert_eq!(offset_of(&PAGE.0[1..]), None);
    }

    #[test]
    fn addresses_beyond_what_the_file_holds_have_none() {
        let (headers, at) = own_headers().unwrap();
        assert_eq!(offset_in(headers, at, at), Some(64), "they follow the file's header");
        let load = headers.iter().rfind(|h| h.p_type(LE) == elf::PT_LOAD).unwrap();
        let bias = at - headers.iter().find(|h| h.p_type(LE) == elf::PT_PHDR).unwrap().p_vaddr(LE);
        let end = bias + load.p_vaddr(LE) + load.p_filesz(LE);
        assert_eq!(offset_in(headers, at, end - 1), Some(load.p_offset(LE) + load.p_filesz(LE) - 1));
        assert_eq!(offset_in(headers, at, end), None);
        assert_eq!(offset_in(headers, at, 0), None);
    }
}
