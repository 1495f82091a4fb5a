//! Our entry in `LD_PRELOAD`, taken out of the program's environment at start.
//!
//! What the program executes must not be profiled by accident, and a program that looks at its environment
//! should find what it would find natively. Editing `environ` once covers `exec`, `system`, `popen` and
//! `posix_spawn` alike, whichever environment the program later copies. Other entries stay.
//!
//! Only shrinks strings and the array in place: no allocation, and `/proc/self/environ` agrees.

use crate::sys;
use core::ptr;

const VARIABLE: &[u8] = b"LD_PRELOAD=";

unsafe extern "C" {
    static mut environ: *mut *mut libc::c_char;
}

/// The environment array; for the main thread it also marks the top of the stack.
pub fn array() -> *mut *mut libc::c_char {
    // SAFETY: reads a word that libc sets up before any constructor.
    unsafe { ptr::read(&raw const environ) }
}

/// Removes the entry that loaded the library which contains `inside`. If it stands there twice, what is in between has come
/// with it and goes as well.
pub fn remove_own_entry(inside: *const ()) {
    // SAFETY: `Dl_info` is plain data.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: any address may be asked for; the result is live.
    if unsafe { libc::dladdr(inside.cast(), &mut info) } == 0 {
        return;
    }
    // SAFETY: libc gives a terminated name that lives as long as the library.
    let path = unsafe { sys::c_bytes(info.dli_fname) };
    let mut at = array();
    if at.is_null() {
        return;
    }
    // SAFETY: before `main`, in the only thread: the array ends with null, its strings are terminated and
    // writable (they lie on the initial stack).
    unsafe {
        while !(*at).is_null() {
            let entry = *at;
            let text = sys::c_bytes(entry);
            if text.starts_with(VARIABLE) {
                let value = entry.add(VARIABLE.len()).cast::<u8>();
                let left = without(value, text.len() - VARIABLE.len(), path);
                *value.add(left) = 0;
                if left == 0 {
                    close_gap(at);
                    continue;
                }
            }
            at = at.add(1);
        }
    }
}

/// Removes `path` (or its last part, if the entry has no folder) from the list of `len` bytes at `list`.
///
/// # Safety
/// `list` must be valid for reads and writes of `len` bytes.
unsafe fn without(list: *mut u8, len: usize, path: &[u8]) -> usize {
    let is_separator = |byte: u8| byte == b':' || byte == b' ';
    let name = path.rsplit(|&byte| byte == b'/').next().unwrap_or(path);
    let is_ours = |entry: &[u8]| entry == path || entry == name;
    // SAFETY: by contract; nothing is written while this is in use.
    let all = unsafe { &*ptr::slice_from_raw_parts(list, len) };
    let mut left_of_ours = all.split(|&byte| is_separator(byte)).filter(|entry| is_ours(entry)).count();
    let (mut from, mut to, mut inside) = (0, 0, false);
    while from < len {
        // SAFETY: `from <= end <= len`, `to <= from`.
        unsafe {
            let mut end = from;
            while end < len && !is_separator(*list.add(end)) {
                end += 1;
            }
            let entry = &*ptr::slice_from_raw_parts(list.add(from), end - from);
            if is_ours(entry) {
                left_of_ours -= 1;
                inside = left_of_ours > 0;
            } else if !inside && !entry.is_empty() {
                if to > 0 {
                    *list.add(to) = b':';
                    to += 1;
                }
                ptr::copy(list.add(from), list.add(to), end - from);
                to += end - from;
            }
            from = end + 1;
        }
    }
    to
}

/// Removes the array's element at `at`.
///
/// # Safety
/// `at` must point into an array of pointers that ends with null.
unsafe fn close_gap(mut at: *mut *mut libc::c_char) {
    // SAFETY: stops at the terminating null.
    unsafe {
        while !(*at).is_null() {
            *at = *at.add(1);
            at = at.add(1);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use std::vec::Vec;

    fn check(list: &str, path: &str, expected: &str) {
        let mut bytes = Vec::from(list.as_bytes());
        // SAFETY: the vector is live and of that length.
        let left = unsafe { super::without(bytes.as_mut_ptr(), bytes.len(), path.as_bytes()) };
        assert_eq!(std::str::from_utf8(&bytes[..left]).unwrap(), expected, "{list} without {path}");
    }

    #[test]
    fn only_our_entry_goes() {
        check("/a/ours.so", "/a/ours.so", "");
        check("/a/ours.so:/b/other.so", "/a/ours.so", "/b/other.so");
        check("/b/other.so /a/ours.so", "/a/ours.so", "/b/other.so");
        check("/b/x.so:/a/ours.so:y.so", "/a/ours.so", "/b/x.so:y.so");
        check("ours.so:/b/ours.so", "/a/ours.so", "/b/ours.so");
        check("/b/other.so", "/a/ours.so", "/b/other.so");
        check("::/a/ours.so::", "/a/ours.so", "");
        check("/a/ours.so:/b/beside.so:/a/ours.so:y.so", "/a/ours.so", "y.so");
    }
}
