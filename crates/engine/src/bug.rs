//! What happens when the engine itself is wrong: one line, with what to attach.

use crate::sys;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// A line under construction, without allocation.
pub struct Line {
    buf: [u8; 512],
    len: usize,
}

impl Line {
    /// An empty one.
    pub fn new() -> Line {
        Line { buf: [0; 512], len: 0 }
    }

    /// Appends text.
    pub fn text(mut self, t: &[u8]) -> Line {
        let n = t.len().min(self.buf.len() - self.len);
        self.buf[self.len..self.len + n].copy_from_slice(&t[..n]);
        self.len += n;
        self
    }

    /// Appends a number in hexadecimal.
    pub fn hex(self, v: u64) -> Line {
        let mut digits = [0u8; 18];
        digits[..2].copy_from_slice(b"0x");
        let n = (64 - v.leading_zeros()).div_ceil(4).max(1) as usize;
        for i in 0..n {
            digits[2 + i] = b"0123456789abcdef"[(v >> (4 * (n - 1 - i)) & 15) as usize];
        }
        self.text(&digits[..2 + n])
    }

    /// Writes it out.
    pub fn print(self) {
        let line = self.text(b"\n");
        sys::print(&line.buf[..line.len]);
    }
}

impl Default for Line {
    fn default() -> Self {
        Line::new()
    }
}

/// Where a panic was: the file's name and the line.
static FILE: AtomicPtr<u8> = AtomicPtr::new(core::ptr::null_mut());
static FILE_BYTES: AtomicUsize = AtomicUsize::new(0);
static LINE: AtomicUsize = AtomicUsize::new(0);

/// A panic: notes where, and faults. The fault's handler says so, and hands the program back to native execution if its
/// state is known.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    if let Some(l) = info.location() {
        FILE_BYTES.store(l.file().len(), Ordering::Relaxed);
        LINE.store(l.line() as usize, Ordering::Relaxed);
        FILE.store(l.file().as_ptr().cast_mut(), Ordering::Release);
    }
    // SAFETY: ends this code for good.
    unsafe { core::arch::asm!("ud2", options(noreturn)) }
}

/// Exit status for a bug of ours.
pub const EXIT_BUG: i32 = 70;

/// Reports a bug and ends the process.
pub fn report(what: &[u8], pc: u64, cache_pc: u64) -> ! {
    line(what, pc, cache_pc).text(b"; please report it with the program and this line").print();
    sys::exit_group(EXIT_BUG)
}

/// Reports a bug after which the program goes on natively.
pub fn survived(what: &[u8], pc: u64, cache_pc: u64) {
    line(what, pc, cache_pc)
        .text(b"; the program goes on natively; please report it with the program and this line")
        .print();
}

fn line(what: &[u8], pc: u64, cache_pc: u64) -> Line {
    let mut line = Line::new().text(b"farsight: engine bug: ").text(what);
    let file = FILE.load(Ordering::Acquire);
    if !file.is_null() {
        // SAFETY: the name of a source file in our image, with its length.
        let name = unsafe { core::slice::from_raw_parts(file, FILE_BYTES.load(Ordering::Relaxed)) };
        line = line.text(b": panic at ").text(name).text(b":").hex(LINE.load(Ordering::Relaxed) as u64);
    }
    line.text(b" (pc ").hex(pc).text(b", cache ").hex(cache_pc).text(b")")
}

/// Reports something that the engine cannot do, and ends the process.
pub fn fatal(what: &[u8]) -> ! {
    Line::new().text(b"farsight: ").text(what).print();
    sys::exit_group(EXIT_BUG)
}
