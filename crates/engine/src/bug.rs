//! What happens when the engine itself is wrong: one line, with what to attach.

use crate::sys;

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

/// Exit status for a bug of ours.
pub const EXIT_BUG: i32 = 70;

/// Reports a bug and ends the process.
pub fn report(what: &[u8], pc: u64, cache_pc: u64) -> ! {
    Line::new()
        .text(b"farsight: engine bug: ")
        .text(what)
        .text(b" (pc ")
        .hex(pc)
        .text(b", cache ")
        .hex(cache_pc)
        .text(b"); please report it with the program and this line")
        .print();
    sys::exit_group(EXIT_BUG)
}

/// Reports an instruction that cannot be run.
pub fn unsupported(pc: u64) -> ! {
    // SAFETY: the translator just decoded the bytes at `pc`.
    let b = unsafe { core::slice::from_raw_parts(pc as *const u8, 8) };
    let mut line =
        Line::new().text(b"farsight: the engine cannot run the instruction at ").hex(pc).text(b":");
    for byte in b {
        line = line.text(b" ").hex(u64::from(*byte));
    }
    line.print();
    sys::exit_group(EXIT_BUG)
}

/// Reports something that the engine cannot do, and ends the process.
pub fn fatal(what: &[u8]) -> ! {
    Line::new().text(b"farsight: ").text(what).print();
    sys::exit_group(EXIT_BUG)
}
