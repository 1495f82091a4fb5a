//! Clocks, timers, sleeping, scheduling, resources, system information.

use crate::arena::Agree::{Covers, Exactly};
use crate::arena::check;

#[test]
fn clocks() {
    check(libc::SYS_clock_gettime, Covers, |a| [1, a.room(16), 0, 0, 0, 0]);
    check(libc::SYS_clock_getres, Exactly, |a| [1, a.room(16), 0, 0, 0, 0]);
    check(libc::SYS_gettimeofday, Covers, |a| [a.room(16), a.room(8), 0, 0, 0, 0]);
    check(libc::SYS_time, Covers, |a| [a.room(8), 0, 0, 0, 0, 0]);
    check(libc::SYS_times, Covers, |a| [a.room(32), 0, 0, 0, 0, 0]);
    check(libc::SYS_adjtimex, Covers, |a| [a.put(&[0; 208]), 0, 0, 0, 0, 0]);
}

#[test]
fn sleeping_writes_nothing_unless_interrupted() {
    assert_eq!(check(libc::SYS_nanosleep, Exactly, |a| [a.words(&[0, 1000]), a.room(16), 0, 0, 0, 0]), 0);
    assert_eq!(
        check(libc::SYS_clock_nanosleep, Exactly, |a| [1, 0, a.words(&[0, 1000]), a.room(16), 0, 0]),
        0
    );
}

#[test]
fn timers() {
    check(libc::SYS_getitimer, Exactly, |a| [0, a.room(32), 0, 0, 0, 0]);
    check(libc::SYS_setitimer, Exactly, |a| [0, a.words(&[0, 0, 0, 0]), a.room(32), 0, 0, 0]);
    // SAFETY: makes a descriptor, touches no memory.
    let fd = unsafe { libc::syscall(libc::SYS_timerfd_create, 1, 0) } as u64;
    check(libc::SYS_timerfd_settime, Exactly, |a| [fd, 0, a.words(&[0, 0, 100, 0]), a.room(32), 0, 0]);
    check(libc::SYS_timerfd_gettime, Covers, |a| [fd, a.room(32), 0, 0, 0, 0]);
    let id = check(libc::SYS_timer_create, Covers, |a| {
        let mut event = [0u8; 64];
        event[12..16].copy_from_slice(&1u32.to_le_bytes()); // SIGEV_NONE
        [1, a.put(&event), a.room(4), 0, 0, 0]
    });
    assert_eq!(id, 0);
    check(libc::SYS_timer_gettime, Exactly, |a| [0, a.room(32), 0, 0, 0, 0]);
}

#[test]
fn scheduling_and_resources() {
    check(libc::SYS_sched_getparam, Exactly, |a| [0, a.room(4), 0, 0, 0, 0]);
    check(libc::SYS_sched_rr_get_interval, Exactly, |a| [0, a.room(16), 0, 0, 0, 0]);
    assert!(check(libc::SYS_sched_getaffinity, Exactly, |a| [0, 512, a.room(512), 0, 0, 0]) > 0);
    check(libc::SYS_sched_getattr, Exactly, |a| [0, a.room(100), 100, 0, 0, 0]);
    check(libc::SYS_sched_getattr, Exactly, |a| [0, a.room(100), 48, 0, 0, 0]);
    check(libc::SYS_getrlimit, Exactly, |a| [7, a.room(16), 0, 0, 0, 0]);
    check(libc::SYS_prlimit64, Exactly, |a| [0, 7, 0, a.room(16), 0, 0]);
    check(libc::SYS_getrusage, Covers, |a| [0, a.room(144), 0, 0, 0, 0]);
    check(libc::SYS_getcpu, Covers, |a| [a.room(4), a.room(4), 0, 0, 0, 0]);
    check(libc::SYS_sysinfo, Covers, |a| [a.room(112), 0, 0, 0, 0, 0]);
    check(libc::SYS_uname, Exactly, |a| [a.room(390), 0, 0, 0, 0, 0]);
    assert_eq!(check(libc::SYS_getrandom, Covers, |a| [a.room(200), 200, 0, 0, 0, 0]), 200);
    check(libc::SYS_get_mempolicy, Exactly, |a| [a.room(4), a.room(16), 65, 0, 0, 0]);
}
