//! System calls: which ones are looked at, and what is done about them.
//!
//! In the cache a system call first looks its number up in a byte table and adds the pending word; zero means go:
//! ```text
//!   movzx ecx, ax
//!   movzx ecx, byte [rcx+table]
//!   mov   r11, gs:[PEND]
//!   lea   rcx, [rcx+r11]
//!   jrcxz go
//!   jmp   hook
//! go: syscall
//!   lea   rcx, [next]          ; what the kernel leaves there natively
//! ```
//! rcx and r11 are the kernel's to clobber, and no flag changes. A hooked call runs on the engine's stack and
//! makes the system call itself.

use crate::addrmap::Point;
use crate::block::{Exit, ExitKind, NONE};
use crate::client::Client;
use crate::emit::reg;
use crate::engine::{Engine, Shared};
use crate::region::Region;
use crate::state::{ThreadState, off};
use crate::superblock::Insn;
use crate::sys::{self, errno, mm, nr};
use crate::translate::Streams;

/// System calls that the engine itself must see.
const HOOKED: &[u64] =
    &[nr::MMAP, nr::MPROTECT, nr::MUNMAP, nr::MREMAP, nr::SHMAT, nr::SHMDT, nr::PKEY_MPROTECT, nr::RSEQ];

impl<C: Client> Engine<C> {
    /// Fills the table.
    pub(crate) fn hook_syscalls(&mut self) {
        for &n in HOOKED {
            self.low.hook(n, true);
        }
    }

    /// Emits a system call.
    pub(crate) fn emit_syscall(&mut self, s: &mut Streams, id: u32, entry: u64, insn: &Insn, next: u64) {
        let len = insn.ins.len();
        let site = self.new_exit(Exit {
            from: id,
            kind: ExitKind::Syscall,
            target: next,
            site: 0,
            stub: 0,
            to: NONE,
            next_incoming: NONE,
        });
        let hook = s.cold.here();
        s.cold.store_gs_imm32(off::EXIT_ID, site);
        s.cold.jmp(self.cache.arena(s.arena).to_syscall);

        let step = |maps: &mut crate::addrmap::AddressMaps, at: u64| {
            maps.add(at - entry, len, Point::SyscallWindow, 0);
        };
        step(&mut self.maps, s.hot.here());
        s.hot.bytes(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
        step(&mut self.maps, s.hot.here());
        s.hot.bytes(&[0x0f, 0xb6, 0x89]); // movzx ecx, byte [rcx+table]
        s.hot.d32(self.low.syscalls() as i32);
        step(&mut self.maps, s.hot.here());
        s.hot.load_gs(reg::R11, off::PEND);
        step(&mut self.maps, s.hot.here());
        s.hot.bytes(&[0x4a, 0x8d, 0x0c, 0x19]); // lea rcx, [rcx+r11]
        step(&mut self.maps, s.hot.here());
        s.hot.bytes(&[0xe3, 5]); // jrcxz go
        step(&mut self.maps, s.hot.here());
        s.hot.jmp(hook);
        step(&mut self.maps, s.hot.here());
        s.hot.bytes(&[0x0f, 0x05]); // go: syscall
        self.maps.add(s.hot.here() - entry, len, Point::After, 0);
        s.hot.load_address(reg::RCX, next);
        self.blocks.exits[site as usize].site = s.hot.here();
        self.maps.add(s.hot.here() - entry, len, Point::After, 0);
        self.maps.conclude();
    }
}

/// A hooked system call: does it and leaves its result in the saved registers.
pub(crate) fn hooked<C: Client>(shared: &'static Shared<C>, st: &mut ThreadState) {
    let n = st.gpr[0];
    let a = [st.gpr[7], st.gpr[6], st.gpr[2], st.gpr[10], st.gpr[8], st.gpr[9]];
    let (after, next) = {
        let e = shared.lock.lock();
        let x = e.blocks.exits[st.exit_id as usize];
        (x.site, x.target)
    };
    st.resume = after;
    st.gpr[1] = next;
    st.gpr[11] = st.rflags;
    let result = match n {
        nr::MMAP | nr::MPROTECT | nr::MUNMAP | nr::MREMAP | nr::SHMAT | nr::SHMDT | nr::PKEY_MPROTECT => {
            shared.lock.lock().memory_call(n, a)
        }
        nr::RSEQ => -errno::ENOSYS,
        // SAFETY: the program's own call, passed on as it is.
        _ => unsafe { sys::call(n, a) },
    };
    st.gpr[0] = result as u64;
}

fn page_up(n: u64) -> u64 {
    n.wrapping_add(0xfff) & !0xfff
}

impl<C: Client> Engine<C> {
    /// A system call that changes the address space, made under the lock so that the region table is never behind.
    fn memory_call(&mut self, n: u64, a: [u64; 6]) -> i64 {
        // SAFETY: the program's own call, passed on as it is.
        let r = unsafe { sys::call(n, a) };
        if sys::failed(r) {
            return r;
        }
        match n {
            nr::MMAP => {
                let start = r as u64;
                let end = start + page_up(a[1]);
                self.replace(Region { start, end, prot: a[2] as u8 & 7, shared: a[3] & mm::MAP_TYPE != mm::MAP_PRIVATE });
            }
            nr::MUNMAP => {
                self.flush(a[0], a[0] + page_up(a[1]));
                self.regions.remove(a[0], a[0] + page_up(a[1]));
            }
            nr::MPROTECT | nr::PKEY_MPROTECT => {
                self.flush(a[0], a[0] + page_up(a[1]));
                self.regions.protect(a[0], a[0] + page_up(a[1]), a[2] as u8 & 7);
            }
            nr::MREMAP => {
                let old = self.regions.get(a[0]).copied();
                self.flush(a[0], a[0] + page_up(a[1]));
                self.regions.remove(a[0], a[0] + page_up(a[1]));
                if let Some(o) = old {
                    let start = r as u64;
                    self.replace(Region { start, end: start + page_up(a[2]), ..o });
                }
            }
            _ => {}
        }
        r
    }

    fn replace(&mut self, r: Region) {
        if self.pages.any(r.start, r.end) {
            self.flush(r.start, r.end);
        }
        self.regions.insert(r);
    }
}
