//! Following children (`wire::follow`): a fork goes on in the cache with shared memory of its own, and an `execve` gets
//! the engine again.
//!
//! The launcher does what needs another process (making memory, attaching, injecting). If it refuses, or is gone,
//! the process goes on natively, as it does where children are not followed.
//!
//! # Rules
//! The engine lock is not held while the launcher is waited for, but in the child of a fork, where nobody else could
//! want it.

use crate::client::{Client, Forked};
use crate::engine::Engine;
use crate::state::ThreadState;
use crate::sys::{self, errno, nr};
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicU32, compiler_fence};
use wire::boot::{Boot, flags};
use wire::follow::{Control, IMAGES_MAX, Slot, kind, state};

/// Where requests go.
#[derive(Clone, Copy)]
pub(crate) struct Follow {
    control: &'static Control,
    launcher: u64,
    image: u32,
    flags: u32,
}

impl Follow {
    /// `None` where children are not followed.
    pub(crate) fn new(boot: &Boot) -> Option<Follow> {
        if boot.flags & flags::FOLLOW == 0 || boot.follow_base == 0 {
            return None;
        }
        Some(Follow {
            // SAFETY: the launcher mapped it there for as long as this program image lives; all of it is atomics.
            control: unsafe { &*(boot.follow_base as *const Control) },
            launcher: boot.launcher_pid.into(),
            image: boot.follow_image,
            flags: boot.flags & flags::DEATH_SIGNAL,
        })
    }

    /// Before an `execve` or `execveat`: once this returns, the launcher waits for it. `None`: it will not.
    pub(crate) fn before_exec(&self, st: &ThreadState, n: u64, a: [u64; 6]) -> Option<Exec> {
        const CURRENT_FOLDER: u64 = -100i64 as u64;
        let slot = self.claim()?;
        let (folder, path) = if n == nr::EXECVE { (CURRENT_FOLDER, a[0]) } else { (a[0], a[1]) };
        slot.path.store(path, Relaxed);
        slot.folder.store(folder, Relaxed);
        self.ask(slot, kind::EXEC, st.tid).then_some(Exec(slot))
    }

    /// Notes how the process ends, as far as is known here.
    pub(crate) fn ends(&self, status: Option<u64>) {
        const PROCESS_CPU: u64 = 2;
        let Some(end) =
            self.control.ends.get(self.image as usize).filter(|_| (self.image as usize) < IMAGES_MAX)
        else {
            return;
        };
        let mut t = [0u64; 2];
        // SAFETY: the kernel writes two words.
        unsafe { sys::call(nr::CLOCK_GETTIME, [PROCESS_CPU, t.as_mut_ptr() as u64, 0, 0, 0, 0]) };
        end.cpu_ns.store(t[0] * 1_000_000_000 + t[1], Relaxed);
        if let Some(s) = status {
            end.status.store(0x100 | s as u32 & 0xff, Release);
        }
    }

    /// A slot of our own; `None` when nobody answers any more.
    fn claim(&self) -> Option<&'static Slot> {
        loop {
            for slot in &self.control.slots {
                if slot.state.compare_exchange(state::FREE, state::CLAIMED, AcqRel, Relaxed).is_ok() {
                    return Some(slot);
                }
            }
            if self.is_deserted() {
                return None;
            }
            sys::yield_now();
        }
    }

    /// Asks and waits for the answer. The slot is ours afterwards if it is yes, else free.
    fn ask(&self, slot: &'static Slot, kind: u32, tid: u32) -> bool {
        const PR_SET_PTRACER: u64 = 0x5961_6d61;
        // SAFETY: lets the launcher attach where only ancestors may (it may have lost that place); no memory is
        // involved.
        let pid = unsafe {
            sys::call(nr::PRCTL, [PR_SET_PTRACER, self.launcher, 0, 0, 0, 0]);
            sys::call(nr::GETPID, [0; 6])
        };
        slot.kind.store(kind, Relaxed);
        slot.pid.store(pid as u32, Relaxed);
        slot.tid.store(tid, Relaxed);
        slot.image.store(self.image, Relaxed);
        slot.flags.store(self.flags, Relaxed);
        slot.state.store(state::ASKED, Release);
        self.control.bell.fetch_add(1, AcqRel);
        wake(&self.control.bell);
        loop {
            match slot.state.load(Acquire) {
                state::ASKED => {}
                state::GRANTED => return true,
                _ => {
                    slot.state.store(state::FREE, Release);
                    return false;
                }
            }
            wait(&slot.state, state::ASKED);
            if self.is_deserted()
                && slot.state.compare_exchange(state::ASKED, state::FREE, AcqRel, Relaxed).is_ok()
            {
                return false;
            }
        }
    }

    /// Is there no launcher any more?
    fn is_deserted(&self) -> bool {
        // SAFETY: asks whether the process is there; nothing is sent.
        let gone = || unsafe { sys::call(nr::KILL, [self.launcher, 0, 0, 0, 0, 0]) } == -errno::ESRCH;
        self.control.closed.load(Acquire) != 0 || gone()
    }
}

/// An `execve` that the launcher waits for.
pub(crate) struct Exec(&'static Slot);

impl Exec {
    /// It failed: waits until the launcher has let go.
    pub(crate) fn failed(self) {
        self.0.state.store(state::FAILED, Release);
        while self.0.state.load(Acquire) == state::FAILED {
            wait(&self.0.state, state::FAILED);
        }
    }
}

fn wake(word: &AtomicU32) {
    const WAKE: u64 = 1;
    // SAFETY: the word is live.
    unsafe { sys::call(nr::FUTEX, [word.as_ptr() as u64, WAKE, i32::MAX as u64, 0, 0, 0]) };
}

/// Waits until woken, at most a tenth of a second.
fn wait(word: &AtomicU32, value: u32) {
    const WAIT: u64 = 0;
    let time = [0u64, 100_000_000];
    // SAFETY: the word and the time are live.
    unsafe { sys::call(nr::FUTEX, [word.as_ptr() as u64, WAIT, value.into(), time.as_ptr() as u64, 0, 0]) };
}

impl<C: Client> Engine<C> {
    /// In the child of a fork, whose only thread has this state: goes on in the cache, with shared memory of its own.
    /// False if that cannot be; nothing has changed then.
    pub(crate) fn follow_fork(&mut self, st: &mut ThreadState) -> bool {
        if !C::FOLLOWS_FORKS || st.signals.vfork_child {
            return false;
        }
        let Some(follow) = Follow::new(&self.boot) else { return false };
        let Some(slot) = follow.claim() else { return false };
        if !follow.ask(slot, kind::FORK, st.tid) {
            return false;
        }
        let (fd, image) = (slot.answer.load(Relaxed), slot.answer_image.load(Relaxed));
        let fd = open_of(follow.launcher, fd.into());
        slot.state.store(state::FREE, Release);
        if sys::failed(fd) {
            return false;
        }
        self.boot.follow_image = image;
        self.boot.flags &= !flags::DEATH_SIGNAL;
        self.slabs.keep_only(st.slab);
        let forked =
            Forked { fd: fd as u64, slab: st.this as u64, tid: st.tid, slabs_taken: self.slabs.taken };
        self.client.forked(&self.boot, &forked);
        // SAFETY: a descriptor that was just opened; the mappings stay.
        unsafe { sys::call(nr::CLOSE, [fd as u64, 0, 0, 0, 0, 0]) };
        true
    }
}

/// Opens a descriptor of another process.
fn open_of(pid: u64, fd: u64) -> i64 {
    const READ_WRITE_CLOEXEC: u64 = 0o2 | 0o2000000;
    let mut path = [0u8; 64];
    let mut at = 0;
    let mut put = |text: &[u8]| {
        path[at..at + text.len()].copy_from_slice(text);
        at += text.len();
    };
    let mut digits = [0u8; 20];
    put(b"/proc/");
    put(decimal(pid, &mut digits));
    put(b"/fd/");
    put(decimal(fd, &mut digits));
    compiler_fence(Release);
    // SAFETY: the path ends with a nul byte: 64 bytes are more than it takes.
    unsafe { sys::call(nr::OPEN, [path.as_ptr() as u64, READ_WRITE_CLOEXEC, 0, 0, 0, 0]) }
}

fn decimal(mut n: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (n % 10) as u8;
        n /= 10;
        if n == 0 {
            return &digits[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_in_decimal() {
        let mut d = [0; 20];
        assert_eq!(decimal(0, &mut d), b"0");
        assert_eq!(decimal(u64::MAX, &mut d), b"18446744073709551615");
    }
}
