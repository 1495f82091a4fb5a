//! From a call and its entry in the table to ranges.

use crate::effect::{Effect, Len};
use crate::limits::{ELEMENTS_MAX, STRING_BYTES_MAX};
use crate::{Access, Call, Memory, Range, control, ioctl, message, process, table};

/// Calls `each` for every range that the kernel touched for `call`, in no particular order; ranges may overlap.
/// Unknown numbers touch nothing.
pub fn for_each_range(call: &Call, memory: &dyn Memory, each: &mut dyn FnMut(Range)) {
    let Some((_, effects)) = table::entry(call.number) else { return };
    let mut visit = Visit { call, memory, each };
    for effect in *effects {
        visit.effect(effect);
    }
}

/// What the special cases work with.
pub(crate) struct Visit<'a> {
    pub call: &'a Call,
    pub memory: &'a dyn Memory,
    pub each: &'a mut dyn FnMut(Range),
}

impl Visit<'_> {
    pub fn arg(&self, index: usize) -> u64 {
        self.call.args[index]
    }

    pub fn ok(&self) -> bool {
        !self.call.failed()
    }

    /// The result as a count, 0 on failure.
    pub fn count(&self) -> u64 {
        if self.ok() { self.call.result as u64 } else { 0 }
    }

    pub fn read(&mut self, addr: u64, len: u64) {
        self.emit(addr, len, Access::Read);
    }

    /// A write that happens on success only.
    pub fn write(&mut self, addr: u64, len: u64) {
        if self.ok() {
            self.emit(addr, len, Access::Write);
        }
    }

    pub fn emit(&mut self, addr: u64, len: u64, access: Access) {
        if addr != 0 && len != 0 && addr.checked_add(len).is_some() {
            (self.each)(Range { addr, len, access });
        }
    }

    pub fn peek_u32(&self, addr: u64) -> Option<u32> {
        let mut bytes = [0; 4];
        (addr != 0 && self.memory.peek(addr, &mut bytes)).then(|| u32::from_le_bytes(bytes))
    }

    pub fn peek_u64(&self, addr: u64) -> Option<u64> {
        let mut bytes = [0; 8];
        (addr != 0 && self.memory.peek(addr, &mut bytes)).then(|| u64::from_le_bytes(bytes))
    }

    /// A NUL-terminated string, the NUL included.
    pub fn string(&mut self, addr: u64) {
        if addr == 0 {
            return;
        }
        let mut len = 0;
        let mut chunk = [0u8; 64];
        while len < STRING_BYTES_MAX {
            let at = addr.wrapping_add(len);
            // Up to the next multiple of 64: never over a page that the string does not reach.
            let room = 64 - (at % 64) as usize;
            if !self.memory.peek(at, &mut chunk[..room]) {
                break;
            }
            if let Some(end) = chunk[..room].iter().position(|b| *b == 0) {
                len += end as u64 + 1;
                break;
            }
            len += room as u64;
        }
        self.read(addr, len);
    }

    fn len(&self, len: Len, addr: u64) -> u64 {
        match len {
            Len::Bytes(n) => n,
            Len::Arg(a) => self.arg(a),
            Len::ArgTimes(a, n) => (self.arg(a) & 0xffff_ffff).saturating_mul(n),
            Len::Result => self.count(),
            Len::ResultMax(a) => self.count().min(self.arg(a)),
            Len::ResultTimes(n) => self.count().saturating_mul(n),
            Len::At(a) => self.peek_u32(self.arg(a)).map_or(0, u64::from),
            Len::ArgPlus(a, n) => self.arg(a).saturating_add(n),
            Len::ResultPlus(n) => self.count().saturating_add(n),
            Len::BytesIfResult(n) => {
                if self.count() > 0 {
                    n
                } else {
                    0
                }
            }
            Len::ResultTimesUnless(a, n) => {
                if self.arg(a) == 0 {
                    0
                } else {
                    self.count().saturating_mul(n)
                }
            }
            Len::OwnSize(at, more) => {
                self.peek_u32(addr.wrapping_add(at)).map_or(0, |size| u64::from(size) + more)
            }
            Len::Bits(a) => self.arg(a).saturating_sub(1).div_ceil(64) * 8,
            Len::FdSet(a) => (self.arg(a) & 0xffff_ffff).div_ceil(64) * 8,
            Len::PerPage(a) => self.arg(a).div_ceil(4096),
        }
    }

    fn effect(&mut self, effect: &Effect) {
        match *effect {
            Effect::Str(a) => self.string(self.arg(a)),
            Effect::In(a, len) => self.read(self.arg(a), self.len(len, self.arg(a))),
            Effect::Out(a, len) => self.write(self.arg(a), self.len(len, self.arg(a))),
            Effect::InOut(a, len) => {
                let (addr, n) = (self.arg(a), self.len(len, self.arg(a)));
                self.read(addr, n);
                self.write(addr, n);
            }
            Effect::OutAlways(a, len) => self.emit(self.arg(a), self.len(len, self.arg(a)), Access::Write),
            Effect::Gather(a, n) => {
                self.vectors(self.arg(a), self.arg(n), Some((Access::Read, self.count())))
            }
            Effect::Scatter(a, n) => {
                self.vectors(self.arg(a), self.arg(n), Some((Access::Write, self.count())))
            }
            Effect::Vectors(a, n) => self.vectors(self.arg(a), self.arg(n), None),
            Effect::Strings(a) => {
                let mut at = self.arg(a);
                for _ in 0..ELEMENTS_MAX {
                    let Some(pointer) = self.peek_u64(at) else { break };
                    self.read(at, 8);
                    if pointer == 0 {
                        break;
                    }
                    self.string(pointer);
                    at = at.wrapping_add(8);
                }
            }
            Effect::Poll(a, n) => {
                let (addr, n) = (self.arg(a), (self.arg(n) & 0xffff_ffff).min(ELEMENTS_MAX * 16));
                self.read(addr, n * 8);
                for i in 0..n {
                    self.write(addr.wrapping_add(i * 8 + 6), 2);
                }
            }
            Effect::OutFailed(a, len) => {
                if !self.ok() {
                    self.emit(self.arg(a), self.len(len, self.arg(a)), Access::Write);
                }
            }
            Effect::XattrArgs(a, out) => {
                // value pointer 0, size 8 (4), flags 12 (4)
                let addr = self.arg(a);
                self.read(addr, 16);
                if let (Some(value), Some(size)) = (self.peek_u64(addr), self.peek_u32(addr.wrapping_add(8)))
                {
                    if out {
                        self.write(value, self.count().min(size.into()));
                    } else {
                        self.read(value, size.into());
                    }
                }
            }
            Effect::SigsetArgument(a) => {
                let addr = self.arg(a);
                self.read(addr, 16);
                if let (Some(set), Some(size)) = (self.peek_u64(addr), self.peek_u64(addr.wrapping_add(8))) {
                    self.read(set, size);
                }
            }
            Effect::Address(a, len) => message::address(self, self.arg(a), self.arg(len)),
            Effect::Send(a) => message::send(self, self.arg(a), self.count()),
            Effect::Receive(a) => message::receive(self, self.arg(a), self.count()),
            Effect::SendMany(a) => message::many(self, self.arg(a), false),
            Effect::ReceiveMany(a) => message::many(self, self.arg(a), true),
            Effect::Ioctl => ioctl::visit(self),
            Effect::Fcntl => control::fcntl(self),
            Effect::Prctl => control::prctl(self),
            Effect::ArchPrctl => control::arch_prctl(self),
            Effect::Futex => control::futex(self),
            Effect::FutexWaitv => control::futex_waitv(self),
            Effect::Semctl => control::semctl(self),
            Effect::Shmctl => control::shmctl(self),
            Effect::Msgctl => control::msgctl(self),
            Effect::Seccomp => control::seccomp(self, self.arg(0), self.arg(2)),
            Effect::Keyctl => control::keyctl(self),
            Effect::Quotactl(cmd, addr) => control::quotactl(self, self.arg(cmd), self.arg(addr)),
            Effect::Clone => process::clone(self),
            Effect::Clone3 => process::clone3(self),
            Effect::Ptrace => process::ptrace(self),
            Effect::IoSubmit => process::io_submit(self),
            Effect::IoGetevents => process::io_getevents(self),
        }
    }

    /// An array of `count` vectors, read; of what they point to, `total` bytes with the given access.
    pub fn vectors(&mut self, addr: u64, count: u64, payload: Option<(Access, u64)>) {
        let count = (count & 0xffff_ffff).min(ELEMENTS_MAX);
        self.read(addr, count * 16);
        let Some((access, mut left)) = payload else { return };
        for i in 0..count {
            if left == 0 {
                break;
            }
            let at = addr.wrapping_add(i * 16);
            let (Some(base), Some(len)) = (self.peek_u64(at), self.peek_u64(at.wrapping_add(8))) else {
                break;
            };
            let len = len.min(left);
            self.emit(base, len, access);
            left -= len;
        }
    }
}
