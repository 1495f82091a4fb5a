//! Before `main`: the clock and the program's task. At exit: the record.

use span_rt::{clock, end, libc, local};

/// Called by the C library before `main`, on the main thread.
#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_MAIN: extern "C" fn() = before_main;

extern "C" fn before_main() {
    crate::join::calibrate();
    span_rt::samples::start();
    local::start();
    // SAFETY: the function stays mapped: this crate is linked into the program.
    unsafe { libc::atexit(at_exit) };
}

extern "C" fn at_exit() {
    let Some(collected) = local::collect() else { return };
    let problems = end::problems(&collected);
    let facts = [
        ("threads", collected.threads.to_string()),
        ("repaired", collected.repaired.0.to_string()),
        ("lost-ticks", collected.repaired.1.to_string()),
        ("hook-ticks", clock::HOOK.load(core::sync::atomic::Ordering::Relaxed).to_string()),
        ("hook-ticks-shared", span_rt::share::HOOK.load(core::sync::atomic::Ordering::Relaxed).to_string()),
    ];
    end::write("rayon", collected.totals, &facts, problems);
}
