//! The entry points of libgomp that are interposed; see `idle_rt::omp`.
//!
//! A program that does not use libgomp never calls these; the real functions are looked up at the first call.
#![allow(non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]

use idle_rt::omp::{Body, Copy, region, task, waiting};
use core::ffi::{CStr, c_void};
use preload::real::Slot;

type Ptr = *mut c_void;

/// The real function of that name, as a function of that type.
macro_rules! real {
    ($name:ident as $type:ty) => {{
        static SLOT: Slot = Slot::new();
        const NAME: &CStr =
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
        // libgomp's function of that name has this type; the program was linked with it.
        core::mem::transmute::<Ptr, $type>(SLOT.get(NAME))
    }};
}

macro_rules! regions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(body: Body, data: Ptr $(, $arg: $type)*) {
            type Real = unsafe extern "C-unwind" fn(Body, Ptr $(, $type)*);
            // SAFETY: the program keeps the function's contract; the body is replaced by one that runs it.
            unsafe { region(body, data, |body, data| real!($name as Real)(body, data $(, $arg)*)) }
        }
    )* };
}
regions! {
    GOMP_parallel(threads: u32, flags: u32);
    GOMP_parallel_sections(threads: u32, count: u32, flags: u32);
    GOMP_parallel_loop_static(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_dynamic(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_guided(threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_dynamic(
        threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_guided(
        threads: u32, start: i64, end: i64, step: i64, chunk: i64, flags: u32);
    GOMP_parallel_loop_runtime(threads: u32, start: i64, end: i64, step: i64, flags: u32);
    GOMP_parallel_loop_nonmonotonic_runtime(
        threads: u32, start: i64, end: i64, step: i64, flags: u32);
    GOMP_parallel_loop_maybe_nonmonotonic_runtime(
        threads: u32, start: i64, end: i64, step: i64, flags: u32);
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn GOMP_parallel_reductions(
    body: Body, data: Ptr, threads: u32, flags: u32,
) -> u32 {
    type Real = unsafe extern "C-unwind" fn(Body, Ptr, u32, u32) -> u32;
    // The data holds what libgomp itself reads, so it cannot be replaced: a region without our frame.
    // SAFETY: the program keeps the function's contract.
    unsafe { real!(GOMP_parallel_reductions as Real)(body, data, threads, flags) }
}

macro_rules! waits {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Real = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: the program keeps the function's contract.
            waiting(|| unsafe { real!($name as Real)($($arg),*) })
        }
    )* };
}
waits! {
    GOMP_barrier() -> ();
    GOMP_barrier_cancel() -> bool;
    GOMP_taskwait() -> ();
    GOMP_taskwait_depend(depend: Ptr) -> ();
    GOMP_taskgroup_end() -> ();
    GOMP_loop_end() -> ();
    GOMP_loop_end_cancel() -> bool;
    GOMP_sections_end() -> ();
    GOMP_sections_end_cancel() -> bool;
    GOMP_single_copy_start() -> Ptr;
    GOMP_critical_start() -> ();
    GOMP_critical_name_start(lock: Ptr) -> ();
    GOMP_ordered_start() -> ();
}

#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn GOMP_task(
    body: Body,
    data: Ptr,
    copy: Option<Copy>,
    bytes: i64,
    align: i64,
    deferred: bool,
    flags: u32,
    depend: Ptr,
    priority: i32,
    detach: Ptr,
) {
    type Real = unsafe extern "C-unwind" fn(
        Body, Ptr, Option<Copy>, i64, i64, bool, u32, Ptr, i32, Ptr,
    );
    /// The task's argument holds an event that libgomp fills in: it must stay where it is.
    const DETACH: u32 = 1 << 13;
    let real = |body, data, copy, bytes: usize, align: usize| {
        // SAFETY: the program keeps the function's contract.
        unsafe {
            real!(GOMP_task as Real)(
                body, data, copy, bytes as i64, align as i64, deferred, flags, depend, priority, detach,
            )
        }
    };
    if flags & DETACH != 0 {
        return real(body, data, copy, bytes as usize, align as usize);
    }
    // SAFETY: as above.
    unsafe { task(body, data, copy, bytes as usize, align as usize, real) }
}
