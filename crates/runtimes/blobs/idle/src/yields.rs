//! `sched_yield`, which only this runtime cares about; see `idle_rt::yields`.

/// As libc's: it never fails.
#[unsafe(no_mangle)]
pub extern "C" fn sched_yield() -> i32 {
    idle_rt::yields::sched_yield();
    0
}
