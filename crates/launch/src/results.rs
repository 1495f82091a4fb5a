//! The memory that the runtime and the collector share.

use crate::error::{LaunchError, os};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::AtomicU32;

/// A sparse anonymous file, mapped here for reading once the program runs.
pub struct Results {
    /// `None` once nobody is to open it any more.
    fd: Option<OwnedFd>,
    base: *const u8,
    bytes: usize,
}

// SAFETY: the mapping belongs to the value, lives as long as it, and can be read from any thread.
unsafe impl Send for Results {}

impl Results {
    pub(crate) fn new(bytes: u64) -> Result<Results, LaunchError> {
        // SAFETY: a constant name; the result is checked before it is owned.
        let fd = unsafe { libc::memfd_create(c"farsight".as_ptr(), libc::MFD_CLOEXEC) };
        if fd < 0 {
            return Err(os("make shared memory"));
        }
        // SAFETY: a descriptor that was just made and that nothing else owns.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        // SAFETY: no memory is involved.
        if unsafe { libc::ftruncate(fd.as_raw_fd(), bytes as libc::off_t) } < 0 {
            return Err(os("size shared memory"));
        }
        // SAFETY: a new mapping of our own file.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                fd.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(os("map shared memory"));
        }
        Ok(Results { fd: Some(fd), base: base.cast(), bytes: bytes as usize })
    }

    /// The memory as the structure that the runtime sees, while the program runs and afterwards.
    pub fn view<T: wire::Layout>(&self) -> &T {
        assert!(size_of::<T>() <= self.bytes);
        // SAFETY: a mapping is aligned to pages; the layouts of `wire` are atomics, valid for any bytes and for
        // writes by others at any time.
        unsafe { &*self.base.cast::<T>() }
    }

    pub(crate) fn fd(&self) -> i32 {
        self.fd.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Closes the descriptor: whoever has the memory keeps it, and so do we.
    pub(crate) fn close(&mut self) {
        self.fd = None;
    }

    /// A word that the program may be writing at this moment.
    pub fn word(&self, offset: u64) -> &AtomicU32 {
        let at = offset as usize;
        assert!(at + 4 <= self.bytes && at.is_multiple_of(4));
        // SAFETY: inside the mapping, aligned, and valid for any bits.
        unsafe { AtomicU32::from_ptr(self.base.add(at).cast_mut().cast()) }
    }

    /// A copy of what has been written so far, up to the last page that was touched, while the program goes on writing. The
    /// first page is copied last.
    pub fn snapshot(&self) -> Vec<u8> {
        const PAGE: usize = 4096;
        let mut copy = Vec::new();
        // SAFETY: no memory is involved.
        let seek = |from: usize, what| unsafe { libc::lseek(self.fd(), from as libc::off_t, what) };
        let mut at = 0;
        while let Ok(start) = usize::try_from(seek(at, libc::SEEK_DATA)) {
            let end = usize::try_from(seek(start, libc::SEEK_HOLE)).unwrap_or(self.bytes).min(self.bytes);
            if end <= start {
                break;
            }
            copy.resize(end, 0);
            self.read_into(start, &mut copy[start..end]);
            at = end;
        }
        if copy.len() >= PAGE {
            self.read_into(0, &mut copy[..PAGE]);
        }
        copy
    }

    /// Copies by the kernel: others may write meanwhile.
    fn read_into(&self, mut at: usize, mut to: &mut [u8]) {
        while !to.is_empty() {
            // SAFETY: a live slice.
            let n = unsafe { libc::pread(self.fd(), to.as_mut_ptr().cast(), to.len(), at as libc::off_t) };
            let Some(n) = usize::try_from(n).ok().filter(|n| *n > 0) else { break };
            to = &mut to[n..];
            at += n;
        }
    }

    /// A second descriptor for the memory, numbered 3 or above: the one that the program's image is mapped with.
    pub(crate) fn duplicate(&self) -> Result<OwnedFd, LaunchError> {
        // SAFETY: duplicates our own descriptor; the result is checked before it is owned.
        let fd = unsafe { libc::fcntl(self.fd(), libc::F_DUPFD_CLOEXEC, 3) };
        if fd < 0 {
            return Err(os("duplicate the shared memory"));
        }
        // SAFETY: a descriptor that was just made and that nothing else owns.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }

    /// Where `bytes` bytes from `offset` on are in our own memory.
    pub(crate) fn address(&self, offset: u64, bytes: usize) -> *mut u8 {
        let at = offset as usize;
        assert!(at + bytes <= self.bytes);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(at).cast_mut() }
    }

    /// A copy of the value at `offset`. The program may still write: torn values are possible until it has ended.
    pub fn get<T: Copy>(&self, offset: u64) -> T {
        let at = offset as usize;
        assert!(at + size_of::<T>() <= self.bytes && at.is_multiple_of(align_of::<T>()));
        // SAFETY: inside the mapping and aligned; only called for types of `wire`, valid for any bits.
        unsafe { self.base.add(at).cast::<T>().read_volatile() }
    }

    /// Writes a value before the program runs.
    pub fn put<T: Copy>(&self, offset: u64, value: T) {
        let at = offset as usize;
        assert!(at + size_of::<T>() <= self.bytes && at.is_multiple_of(align_of::<T>()));
        // SAFETY: inside the mapping and aligned; before the program runs, so nothing else touches it.
        unsafe { self.base.add(at).cast_mut().cast::<T>().write_volatile(value) };
    }

    /// Writes bytes, before the program runs.
    pub fn put_bytes(&self, offset: u64, bytes: &[u8]) {
        let at = offset as usize;
        assert!(at.checked_add(bytes.len()).is_some_and(|end| end <= self.bytes));
        // SAFETY: inside the mapping; before the program runs, so nothing else touches it.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(at).cast_mut(), bytes.len()) };
    }

    /// All of it, once the program has ended. Untouched pages read as zeros and take no memory.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the mapping; callers ask after the program's end, so nothing writes.
        unsafe { std::slice::from_raw_parts(self.base, self.bytes) }
    }

    /// `n` values from `offset` on.
    pub fn slice<T: Copy>(&self, offset: u64, n: usize) -> &[T] {
        let at = offset as usize;
        assert!(at + n * size_of::<T>() <= self.bytes && at.is_multiple_of(align_of::<T>()));
        // SAFETY: inside the mapping and aligned; called after the program has ended, so nothing writes.
        unsafe { std::slice::from_raw_parts(self.base.add(at).cast::<T>(), n) }
    }
}

impl Drop for Results {
    fn drop(&mut self) {
        // SAFETY: our own mapping, of which no slice outlives `self`.
        unsafe { libc::munmap(self.base.cast_mut().cast(), self.bytes) };
    }
}
