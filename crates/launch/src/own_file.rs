//! The file of this executable, for mapping parts of it into other processes.
//!
//! What is mapped need not be copied: the kernel has the file's pages already. (Writing the engine's image into the
//! program took one of the fifteen milliseconds that a run of `true` takes.)

use std::fs::{self, File};
use std::os::unix::fs::FileExt;

/// Where in this executable's file `bytes` lie, if they are a part of it that begins on a page: an offset.
///
/// Compares the first page, so an executable that was started through the dynamic linker (whose own file is then the
/// one that the kernel names) has none.
pub(crate) fn offset_of(bytes: &[u8]) -> Option<u64> {
    let first = bytes.get(..4096)?;
    let maps = fs::read_to_string("/proc/self/maps").ok()?;
    let offset = maps.lines().find_map(|line| offset_in(line, bytes.as_ptr() as u64))?;
    let mut found = [0; 4096];
    File::open("/proc/self/exe").ok()?.read_exact_at(&mut found, offset).ok()?;
    (offset % 4096 == 0 && found == first).then_some(offset)
}

/// The file offset of `address`, if a line of `maps` is about it.
fn offset_in(line: &str, address: u64) -> Option<u64> {
    let mut fields = line.split(' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let start = u64::from_str_radix(start, 16).ok()?;
    let end = u64::from_str_radix(end, 16).ok()?;
    let offset = u64::from_str_radix(fields.nth(1)?, 16).ok()?;
    (start..end).contains(&address).then(|| offset + (address - start))
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
    fn a_line_is_about_the_addresses_that_it_names() {
        let line = "7f0000001000-7f0000003000 r-xp 00002000 fe:00 1 /usr/bin/x";
        assert_eq!(offset_in(line, 0x7f00_0000_2010), Some(0x3010));
        assert_eq!(offset_in(line, 0x7f00_0000_3000), None);
    }
}
