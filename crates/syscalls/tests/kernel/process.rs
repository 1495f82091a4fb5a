//! Processes, signals, identities, prctl, System V objects.

use crate::arena::Agree::{Covers, Exactly};
use crate::arena::{check, reads};
use syscalls::Call;

#[test]
fn identities() {
    check(libc::SYS_getresuid, Exactly, |a| [a.room(4), a.room(4), a.room(4), 0, 0, 0]);
    check(libc::SYS_getresgid, Exactly, |a| [a.room(4), a.room(4), a.room(4), 0, 0, 0]);
    check(libc::SYS_getgroups, Exactly, |a| [1000, a.room(4000), 0, 0, 0, 0]);
    check(libc::SYS_getgroups, Exactly, |a| [0, a.room(4000), 0, 0, 0, 0]);
    check(libc::SYS_capget, Exactly, |a| [a.ints(&[0x2008_0522, 0]), a.room(24), 0, 0, 0, 0]);
}

#[test]
fn signals() {
    check(libc::SYS_rt_sigprocmask, Exactly, |a| [0, 0, a.room(8), 8, 0, 0]);
    check(libc::SYS_rt_sigpending, Exactly, |a| [a.room(8), 8, 0, 0, 0, 0]);
    // glibc's own handlers have a restorer, so every field of an installed one is written.
    check(libc::SYS_rt_sigaction, Covers, |a| [10, 0, a.room(32), 8, 0, 0]);
    check(libc::SYS_sigaltstack, Covers, |a| [0, a.room(24), 0, 0, 0, 0]);
    // No signal pending: times out, nothing is written.
    let none = check(libc::SYS_rt_sigtimedwait, Exactly, |a| {
        [a.words(&[1 << 11]), a.room(128), a.words(&[0, 1]), 8, 0, 0]
    });
    assert_eq!(none, -i64::from(libc::EAGAIN));
    // One pending, blocked for this thread alone: its whole siginfo is written.
    let got = check(libc::SYS_rt_sigtimedwait, Exactly, |a| {
        let set = a.words(&[1 << 11]);
        // SAFETY: blocks SIGUSR2 in this thread and sends it to this thread; both touch only the given set.
        unsafe {
            libc::syscall(libc::SYS_rt_sigprocmask, libc::SIG_BLOCK, set, 0, 8);
            libc::syscall(
                libc::SYS_tgkill,
                std::process::id(),
                libc::syscall(libc::SYS_gettid),
                libc::SIGUSR2,
            );
        }
        [set, a.room(128), 0, 8, 0, 0]
    });
    assert_eq!(got, i64::from(libc::SIGUSR2));
}

#[test]
fn waiting() {
    let spawn = || std::process::Command::new("true").spawn().unwrap().id();
    let got = check(libc::SYS_wait4, Covers, |a| [u64::from(spawn()), a.room(4), 0, a.room(144), 0, 0]);
    assert!(got > 0);
    // Nobody to report yet: nothing is written, though the call succeeds.
    let mut child = std::process::Command::new("sleep").arg("5").spawn().unwrap();
    let pid = u64::from(child.id());
    let none = check(libc::SYS_wait4, Exactly, |a| [pid, a.room(4), libc::WNOHANG as u64, a.room(144), 0, 0]);
    assert_eq!(none, 0);
    child.kill().unwrap();
    child.wait().unwrap();
    let got = check(libc::SYS_waitid, Covers, |a| {
        [libc::P_PID.into(), u64::from(spawn()), a.room(128), libc::WEXITED as u64, a.room(144), 0]
    });
    assert_eq!(got, 0);
}

#[test]
fn controls() {
    check(libc::SYS_prctl, Exactly, |a| [16, a.room(16), 0, 0, 0, 0]);
    check(libc::SYS_prctl, Exactly, |a| [2, a.room(4), 0, 0, 0, 0]);
    check(libc::SYS_prctl, Exactly, |a| [37, a.room(4), 0, 0, 0, 0]);
    check(libc::SYS_arch_prctl, Exactly, |a| [0x1003, a.room(8), 0, 0, 0, 0]);
    check(libc::SYS_arch_prctl, Exactly, |a| [0x1004, a.room(8), 0, 0, 0, 0]);
    check(libc::SYS_get_robust_list, Exactly, |a| [0, a.room(8), a.room(8), 0, 0, 0]);
}

#[test]
fn futexes() {
    let woken = check(libc::SYS_futex, Exactly, |a| [a.ints(&[5]), 1, 1, 0, 0, 0]);
    assert_eq!(woken, 0);
    let again = check(libc::SYS_futex, Exactly, |a| [a.ints(&[5]), 0, 6, 0, 0, 0]);
    assert_eq!(again, -i64::from(libc::EAGAIN));
    // FUTEX_WAKE_OP: set the second word to 7, compare for equality with 0.
    assert!(
        check(libc::SYS_futex, Exactly, |a| [a.ints(&[0]), 5, 1, 1, a.ints(&[0xa5a5_5a5a]), 7 << 12]) >= 0
    );
    assert_eq!(check(libc::SYS_futex, Covers, |a| [a.ints(&[0]), 6, 0, 0, 0, 0]), 0); // LOCK_PI stores our tid
}

#[test]
fn system_v() {
    // SAFETY: makes and removes objects of our own; no memory is attached.
    let (shm, sem, msg) = unsafe {
        (
            libc::syscall(libc::SYS_shmget, 0, 4096, 0o1600),
            libc::syscall(libc::SYS_semget, 0, 3, 0o1600),
            libc::syscall(libc::SYS_msgget, 0, 0o1600),
        )
    };
    assert!(shm >= 0 && sem >= 0 && msg >= 0);
    check(libc::SYS_shmctl, Covers, |a| [shm as u64, 2, a.room(128), 0, 0, 0]);
    check(libc::SYS_semctl, Covers, |a| [sem as u64, 0, 2, a.room(128), 0, 0]);
    check(libc::SYS_msgctl, Covers, |a| [msg as u64, 2, a.room(128), 0, 0, 0]);
    check(libc::SYS_shmctl, Exactly, |a| [0, 3, a.room(128), 0, 0, 0]);
    let sent =
        check(libc::SYS_msgsnd, Exactly, |a| [msg as u64, a.put(b"\x01\0\0\0\0\0\0\0hello"), 5, 0, 0, 0]);
    assert_eq!(sent, 0);
    assert_eq!(check(libc::SYS_msgrcv, Exactly, |a| [msg as u64, a.room(100), 92, 0, 0, 0]), 5);
    // SAFETY: as above.
    unsafe {
        libc::syscall(libc::SYS_shmctl, shm, 0, 0);
        libc::syscall(libc::SYS_semctl, sem, 0, 0, 0);
        libc::syscall(libc::SYS_msgctl, msg, 0, 0);
    }
}

#[test]
fn programs_read_their_arguments() {
    let (path, one, two) = (b"/bin/x\0", b"one\0", b"two2\0");
    let argv = [one.as_ptr(), two.as_ptr(), std::ptr::null()];
    let call = Call {
        number: libc::SYS_execve as u64,
        args: [path.as_ptr() as u64, argv.as_ptr() as u64, 0, 0, 0, 0],
        result: -2,
    };
    let all = reads(&call);
    for (addr, len) in [(path.as_ptr() as u64, 7), (one.as_ptr() as u64, 4), (two.as_ptr() as u64, 5)] {
        assert!(all.contains(&(addr, len)), "{all:x?}");
    }
    assert_eq!(all.iter().filter(|r| r.1 == 8).count(), 3);
}

#[test]
fn clone_stores_thread_ids() {
    let vm_parent_child = 0x100 | 0x10_0000 | 0x100_0000;
    let call = Call { number: 56, args: [vm_parent_child, 0, 0x1000, 0x2000, 0, 0], result: 99 };
    let mut writes = Vec::new();
    struct None_;
    impl syscalls::Memory for None_ {
        fn peek(&self, _: u64, _: &mut [u8]) -> bool {
            false
        }
    }
    syscalls::for_each_range(&call, &None_, &mut |r| writes.push((r.addr, r.len)));
    assert_eq!(writes, [(0x1000, 4), (0x2000, 4)]);
}
