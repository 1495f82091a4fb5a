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
//! go: mov gs:[SYSCALL], rax
//!   syscall
//!   lea   rcx, [rax+EFAULT]    ; perhaps a page that we write-protected: see `efault`
//!   jrcxz efault
//!   lea   rcx, [next]          ; what the kernel leaves there natively
//! ```
//! rcx and r11 are the kernel's to clobber, and no flag changes. A hooked call runs on the engine's stack and
//! makes the system call itself.

use crate::addrmap::Point;
use crate::appmem;
use crate::block::{Exit, ExitKind};
use crate::client::Client;
use crate::emit::reg;
use crate::engine::{Engine, Shared};
use crate::events::Thread;
use crate::follow::Follow;
use crate::kernel::{SIG_IGN, sig};
use crate::region::{Backing, Region};
use crate::state::{ThreadState, off};
use crate::superblock::Insn;
use crate::sys::{self, errno, mm, nr};
use crate::translate::{Streams, hash_bytes};
use crate::{pages, respite, sigcall, signal, thread};
use core::sync::atomic::{AtomicU64, Ordering};
use wire::boot::flags;

/// System calls that the engine itself must see.
const HOOKED: &[u64] = &[
    nr::MMAP,
    nr::MPROTECT,
    nr::MUNMAP,
    nr::MREMAP,
    nr::PKEY_MPROTECT,
    nr::RSEQ,
    nr::RT_SIGACTION,
    nr::RT_SIGPROCMASK,
    nr::RT_SIGRETURN,
    nr::SIGALTSTACK,
    nr::CLONE,
    nr::CLONE3,
    nr::FORK,
    nr::VFORK,
    nr::EXIT,
    nr::EXIT_GROUP,
    nr::EXECVE,
    nr::EXECVEAT,
    nr::ARCH_PRCTL,
    nr::PRCTL,
    nr::GETPPID,
    nr::MADVISE,
    nr::RT_SIGSUSPEND,
    nr::PPOLL,
    nr::PSELECT6,
    nr::EPOLL_PWAIT,
    nr::EPOLL_PWAIT2,
];

/// Bytes from the start of a call's sequence to its `syscall`.
const GO_OFFSET: u64 = 3 + 7 + 9 + 4 + 2 + 5 + 9;

impl<C: Client> Engine<C> {
    /// Fills the table.
    pub(crate) fn hook_syscalls(&mut self) {
        for &n in HOOKED {
            self.low.hook(n, true);
        }
        if self.events().syscalls {
            (0..=0xffff).for_each(|n| self.low.hook(n, true));
        }
    }

    /// Emits a system call.
    pub(crate) fn emit_syscall(&mut self, s: &mut Streams, id: u32, entry: u64, insn: &Insn, next: u64) {
        let len = insn.ins.len();
        let site = self.new_exit(Exit::new(id, ExitKind::Syscall, next, 0));
        let hook = s.cold.here();
        s.cold.store_gs_imm32(off::EXIT_ID, site);
        s.cold.jmp(self.cache.arena(s.arena).to_syscall);

        let step = |maps: &mut crate::addrmap::AddressMaps, at: u64| {
            maps.add(at - entry, len, Point::SyscallWindow, 0);
        };
        self.blocks.exits[site as usize].stub = s.hot.here();
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
        s.hot.store_gs(off::SYSCALL, reg::RAX); // go:
        step(&mut self.maps, s.hot.here());
        debug_assert_eq!(s.hot.here(), self.blocks.exits[site as usize].stub + GO_OFFSET);
        s.hot.bytes(&[0x0f, 0x05]); // syscall
        self.maps.add(s.hot.here() - entry, len, Point::After, 0);
        let efault = s.cold.here();
        s.cold.store_gs_imm32(off::EXIT_ID, site);
        s.cold.jmp(self.cache.arena(s.arena).to_efault);
        if self.events().syscalls {
            s.hot.jmp(efault); // always: the client is told
        } else {
            s.hot.bytes(&[0x48, 0x8d, 0x48, errno::EFAULT as u8]); // lea rcx, [rax+EFAULT]
            self.maps.add(s.hot.here() - entry, len, Point::After, 0);
            s.hot.bytes(&[0xe3, 2, 0xeb, 5]); // jrcxz to the next but one
            s.hot.jmp(efault);
        }
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
    let (site, told) = {
        let mut e = shared.lock.lock();
        (e.exit_of(st), e.events().syscalls)
    };
    let wait = if waits(n) { wait_mask(n, a) } else { None };
    if let Some(mask) = wait {
        respite::before_wait(st, mask);
    }
    if st.pend != 0 {
        // A signal first; the call is made again after it.
        st.resume = site.stub;
        return;
    }
    if told {
        C::before_syscall(&mut Thread::new(st, 0), n, &a);
    }
    st.resume = site.site;
    st.gpr[1] = site.target;
    st.gpr[11] = st.rflags;
    let result = match n {
        nr::MMAP | nr::MPROTECT | nr::MUNMAP | nr::MREMAP | nr::PKEY_MPROTECT | nr::MADVISE => {
            shared.lock.lock().memory_call(n, a)
        }
        _ if waits(n) => {
            // Made from the cache, so that a signal interrupts it as any other; only its mask is noted.
            if let Some(mask) = wait {
                st.signals.wait_mask = mask & !sig::UNBLOCKABLE;
                st.signals.wait_site = site.stub + GO_OFFSET + 2;
            }
            st.resume = site.stub + GO_OFFSET - 9;
            return;
        }
        nr::RSEQ => -errno::ENOSYS,
        nr::RT_SIGACTION => shared.lock.lock().sigaction(st, a),
        nr::RT_SIGPROCMASK => sigcall::sigprocmask(st, a),
        nr::SIGALTSTACK => sigcall::sigaltstack(st, a),
        nr::RT_SIGRETURN => sigcall::sigreturn::<C>(st),
        nr::CLONE | nr::CLONE3 | nr::FORK | nr::VFORK => thread::clone(shared, st, n, a, site.target),
        nr::EXIT => thread::exit(shared, st, a),
        nr::EXIT_GROUP => {
            if !st.signals.vfork_child {
                let mut e = shared.lock.lock();
                e.client.process_end();
                if let Some(follow) = Follow::new(&e.boot) {
                    follow.ends(Some(a[0]));
                }
            }
            // SAFETY: ends the process.
            unsafe { sys::call(n, a) }
        }
        nr::EXECVE | nr::EXECVEAT => exec(shared, st, n, a),
        nr::ARCH_PRCTL => {
            if sets_gs(a) {
                // The call itself is the first thing that is made natively.
                const SYSCALL_BYTES: u64 = 2;
                shared.lock.lock().hand_back(st, site.target - SYSCALL_BYTES);
                return;
            }
            arch_prctl(a)
        }
        nr::PRCTL => prctl(shared, a),
        nr::GETPPID => getppid(shared),
        _ => {
            // Looked at for the client alone: made from the cache, so that a signal interrupts it as any other.
            st.resume = site.stub + GO_OFFSET - 9;
            return;
        }
    };
    st.gpr[0] = result as u64;
    if told {
        C::after_syscall(&mut Thread::new(st, 0), n, &a, result);
    }
}

/// Tells the client about a system call made from the cache, whose registers are in the state.
pub(crate) fn tell_after<C: Client>(st: &mut ThreadState) {
    let a = [st.gpr[7], st.gpr[6], st.gpr[2], st.gpr[10], st.gpr[8], st.gpr[9]];
    let (n, result) = (st.syscall, st.gpr[0] as i64);
    C::after_syscall(&mut Thread::new(st, 0), n, &a, result);
}

/// Does a call wait with a mask of its own?
fn waits(n: u64) -> bool {
    matches!(n, nr::RT_SIGSUSPEND | nr::PPOLL | nr::PSELECT6 | nr::EPOLL_PWAIT | nr::EPOLL_PWAIT2)
}

/// The mask that such a call waits with, if it has one.
fn wait_mask(n: u64, a: [u64; 6]) -> Option<u64> {
    let at = match n {
        nr::RT_SIGSUSPEND => a[0],
        nr::PPOLL => a[3],
        nr::PSELECT6 => appmem::read::<u64>(a[5])?,
        _ => a[4],
    };
    if at == 0 { None } else { appmem::read::<u64>(at) }
}

/// A call returned EFAULT (or, where the client is told, anything): if pages of the program are write-protected by us, one of them may be why. They get
/// their permission back, their translations go, and the call is made again; the second time there are none.
pub(crate) fn efault<C: Client>(shared: &Shared<C>, st: &mut ThreadState) {
    let mut e = shared.lock.lock();
    let site = e.exit_of(st);
    st.gpr[1] = site.target;
    st.resume = site.site;
    let failed = st.gpr[0] as i64 == -errno::EFAULT;
    let pages: alloc::vec::Vec<u64> =
        if failed { e.pages.protected().collect() } else { alloc::vec::Vec::new() };
    if pages.is_empty() {
        let told = e.events().syscalls;
        drop(e);
        if told {
            tell_after::<C>(st);
        }
        return;
    }
    for page in pages {
        e.code_written(page);
    }
    st.gpr[0] = st.syscall;
    st.resume = site.stub;
}

const SET_GS: u64 = 0x1001;

/// Does the program take gs for itself?
fn sets_gs(a: [u64; 6]) -> bool {
    a[0] == SET_GS && a[1] != 0
}

/// `arch_prctl`: gs is the engine's, and shadow stacks cannot work with translated returns.
fn arch_prctl(a: [u64; 6]) -> i64 {
    const GET_GS: u64 = 0x1004;
    const SHADOW_STACK_FIRST: u64 = 0x5001;
    const SHADOW_STACK_LAST: u64 = 0x5005;
    match a[0] {
        SET_GS if a[1] == 0 => 0,
        GET_GS => {
            if appmem::write(a[1], &0u64) {
                0
            } else {
                -errno::EFAULT
            }
        }
        SHADOW_STACK_FIRST..=SHADOW_STACK_LAST => -errno::EINVAL,
        // SAFETY: the program's own call, passed on as it is.
        _ => unsafe { sys::call(nr::ARCH_PRCTL, a) },
    }
}

/// `prctl`: the parent-death signal is the launcher's until the program sets one.
fn prctl<C: Client>(shared: &Shared<C>, a: [u64; 6]) -> i64 {
    const SET_PDEATHSIG: u64 = 1;
    const GET_PDEATHSIG: u64 = 2;
    let ours = || shared.lock.lock().boot.flags & flags::DEATH_SIGNAL != 0;
    if a[0] == GET_PDEATHSIG && ours() {
        return if appmem::write(a[1], &0u32) { 0 } else { -errno::EFAULT };
    }
    // SAFETY: the program's own call, passed on as it is.
    let r = unsafe { sys::call(nr::PRCTL, a) };
    if a[0] == SET_PDEATHSIG && !sys::failed(r) {
        shared.lock.lock().boot.flags &= !flags::DEATH_SIGNAL;
    }
    r
}

/// `getppid`: natively there is no launcher between the program and whoever started it.
fn getppid<C: Client>(shared: &Shared<C>) -> i64 {
    // SAFETY: the program's own call, passed on as it is.
    let r = unsafe { sys::call(nr::GETPPID, [0; 6]) };
    let e = shared.lock.lock();
    if r == i64::from(e.boot.launcher_pid) { e.boot.launcher_parent.into() } else { r }
}

/// `execve`: the new program starts without us, or, where children are followed, gets the engine from the launcher.
/// Ignored synchronous signals must be inherited as ignored, and blocked ones as blocked.
fn exec<C: Client>(shared: &Shared<C>, st: &mut ThreadState, n: u64, a: [u64; 6]) -> i64 {
    let mut ignored = 0u64;
    let follow;
    respite::stop(st);
    {
        let mut e = shared.lock.lock();
        follow = Follow::new(&e.boot);
        if !st.signals.vfork_child {
            e.client.process_end();
            if let Some(follow) = &follow {
                follow.ends(None);
            }
        }
        let actions = *e.actions(st);
        for s in (1..32u32).filter(|s| sig::SYNC & sig::bit(*s) != 0) {
            if actions.0[s as usize].handler == SIG_IGN {
                ignored |= sig::bit(s);
                signal::set_kernel_action(s, &actions.0[s as usize]);
            }
        }
    }
    let awaited = follow.and_then(|f| f.before_exec(st, n, a));
    // SAFETY: the kernel reads one word; then the program's own call, passed on as it is.
    let r = unsafe {
        const SETMASK: u64 = 2;
        sys::call(nr::RT_SIGPROCMASK, [SETMASK, &raw const st.signals.mask as u64, 0, 8, 0, 0]);
        sys::call(n, a)
    };
    if let Some(exec) = awaited {
        exec.failed();
    }
    if st.pend == 0 {
        signal::set_kernel_mask(st.signals.mask);
    }
    if ignored != 0 {
        shared.lock.lock().take_sync_signals();
    }
    r
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
        self.memo.forget();
        match n {
            nr::MMAP if a[1] == 0 => {}
            nr::MMAP => {
                let start = r as u64;
                let end = start + page_up(a[1]);
                self.client.remapped(start, end);
                self.replace(Region { start, end, prot: a[2] as u8 & 7, backing: backing(start, a) });
            }
            nr::MADVISE => {
                const DONTNEED: u64 = 4;
                const FREE: u64 = 8;
                const REMOVE: u64 = 9;
                if matches!(a[2], DONTNEED | FREE | REMOVE) && self.pages.any(a[0], a[0] + page_up(a[1])) {
                    self.unprotect(a[0], a[0] + page_up(a[1]));
                    self.flush(a[0], a[0] + page_up(a[1]));
                }
            }
            nr::MUNMAP => {
                self.client.remapped(a[0], a[0] + page_up(a[1]));
                self.flush(a[0], a[0] + page_up(a[1]));
                self.regions.remove(a[0], a[0] + page_up(a[1]));
            }
            nr::MPROTECT | nr::PKEY_MPROTECT => {
                if self.pages.any(a[0], a[0] + page_up(a[1])) {
                    self.flush(a[0], a[0] + page_up(a[1]));
                }
                self.regions.protect_all(a[0], a[0] + page_up(a[1]), a[2] as u8 & 7);
                self.opened(a[0], a[0] + page_up(a[1]));
            }
            nr::MREMAP => {
                self.client.remapped(a[0], a[0] + page_up(a[1]));
                self.client.remapped(r as u64, r as u64 + page_up(a[2]));
                let old = self.regions.get(a[0]).copied();
                self.flush(a[0], a[0] + page_up(a[1]));
                self.regions.remove(a[0], a[0] + page_up(a[1]));
                if let Some(o) = old {
                    let start = r as u64;
                    let moved =
                        |b: Backing| Backing { base: b.base.wrapping_add(start).wrapping_sub(a[0]), ..b };
                    self.replace(Region {
                        start,
                        end: start + page_up(a[2]),
                        backing: o.backing.map(moved),
                        ..o
                    });
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
        self.opened(r.start, r.end);
    }

    /// A range may have become writable: code that is shown there too is translated again, with permission taken from
    /// this range.
    fn opened(&mut self, start: u64, end: u64) {
        if !self.regions.writes_through {
            return;
        }
        for (start, end) in self.regions.written_through(start, end) {
            if self.pages.any(start, end) {
                self.unprotect(start, end);
                self.flush(start, end);
            }
        }
    }
}

/// The file that a new mapping shows.
fn backing(start: u64, a: [u64; 6]) -> Option<Backing> {
    static UNNAMED: AtomicU64 = AtomicU64::new(1);
    const NO_DEVICE: u64 = u64::MAX;
    let shared = a[3] & mm::MAP_TYPE != mm::MAP_PRIVATE;
    if a[3] & mm::MAP_ANONYMOUS != 0 {
        let file = (NO_DEVICE, UNNAMED.fetch_add(1, Ordering::Relaxed));
        return shared.then_some(Backing { file, base: start, shared });
    }
    let mut stat = [0u64; 18];
    // SAFETY: the kernel writes one `struct stat` of 144 bytes.
    let r = unsafe { sys::call(nr::FSTAT, [a[4] & 0xffff_ffff, stat.as_mut_ptr() as u64, 0, 0, 0, 0]) };
    (!sys::failed(r)).then(|| Backing { file: (stat[0], stat[1]), base: start.wrapping_sub(a[5]), shared })
}

/// Code that the program may also write.
impl<C: Client> Engine<C> {
    /// Notes that block `id` is made from `pages`, and takes write permission from those that have it. Returns
    /// whether the program may write to any of them.
    pub(crate) fn protect_code(&mut self, pages: &[u64], id: u32) -> bool {
        let mut writable = false;
        for &page in pages {
            self.pages.note(page, id);
            if let Some(r) = self.regions.get(page)
                && u64::from(r.prot) & mm::PROT_WRITE != 0
            {
                writable = true;
                if self.pages.protect(page) {
                    self.close_page(page);
                }
            }
            for alias in self.regions.aliases(page) {
                writable = true;
                if self.pages.protect_alias(alias, page) {
                    self.close_page(alias);
                }
            }
        }
        writable
    }

    /// Takes write permission from a page.
    fn close_page(&self, page: u64) {
        if let Some(r) = self.regions.get(page) {
            let prot = u64::from(r.prot) & !mm::PROT_WRITE;
            // SAFETY: only takes a permission away; the fault that follows gives it back.
            unsafe { sys::call(nr::MPROTECT, [page, 4096, prot, 0, 0, 0]) };
        }
    }

    /// A block at `pc` whose page was written since, if its own bytes are still the same: live again.
    pub(crate) fn revive(&mut self, pc: u64) -> Option<u32> {
        let id = self.suspended.remove(&pc)?;
        let b = self.blocks.list[id as usize];
        let mut hash = 1;
        for (at, len) in self.maps.instructions(b.map, b.pc) {
            if self.regions.executable_end(at).is_none_or(|end| end < at + len as u64) {
                return None;
            }
            hash = hash_bytes(hash, at, len);
        }
        if b.source == 0 || hash != b.source {
            return None;
        }
        self.blocks.list[id as usize].live = true;
        self.blocks.dead -= 1;
        self.blocks.set(pc, id);
        let mut pages = core::mem::take(&mut self.page_list);
        pages::distinct(self.maps.instructions(b.map, b.pc), &mut pages);
        self.protect_code(&pages, id);
        self.page_list = pages;
        Some(id)
    }

    /// Gives write permission back to the pages of a range that lost it to us.
    pub(crate) fn unprotect(&mut self, start: u64, end: u64) {
        let pages: alloc::vec::Vec<u64> =
            self.pages.protected().filter(|p| (start..end).contains(p)).collect();
        for page in pages {
            if let Some(r) = self.regions.get(page) {
                // SAFETY: the permission that the program asked for.
                unsafe { sys::call(nr::MPROTECT, [page, 4096, r.prot.into(), 0, 0, 0]) };
            }
        }
    }

    /// A store faulted at `address`: if it only did because of us, flush what was made from that page and give
    /// the permission back.
    pub(crate) fn code_written(&mut self, address: u64) -> bool {
        let page = address & !0xfff;
        let Some(r) = self.regions.get(page).copied() else { return false };
        if u64::from(r.prot) & mm::PROT_WRITE == 0 {
            return false;
        }
        // Even if another thread was faster: the region says that the store is allowed, so try again.
        if self.pages.is_protected(page) {
            self.flush(page, page + 4096);
            for code in self.pages.take_aliased(page) {
                self.flush(code, code + 4096);
            }
            // SAFETY: the permission that the program asked for.
            unsafe { sys::call(nr::MPROTECT, [page, 4096, r.prot.into(), 0, 0, 0]) };
        }
        true
    }
}
