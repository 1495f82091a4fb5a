//! OpenMP on gcc's libgomp, by its entry points.
//!
//! libgomp has no tools interface, and its waits are system calls of its own. But every region and every task is handed to
//! it as a function and an argument, so a function of ours can stand in between. A thread of a team works while it is
//! inside one of these, and waits in between (in the team's barrier, whether it spins or sleeps).
//!
//! ```text
//! GOMP_parallel(body, data)  ->  Team::region(..)  ->  the real one, with what that gives in place of body and data
//! GOMP_task(body, data, ..)  ->  the real one, with a head before the data: Team::run_task(token, body, data)
//! GOMP_barrier() and others  ->  Team::waiting(what for, the real one)
//! GOMP_critical_end(), ..    ->  Team::waking(what for), the real one
//! ```
//! [`interpose_gomp!`](crate::interpose_gomp!) exports them, beside `interpose!`. A program that does not use
//! libgomp never calls these; real functions are looked up at the first call. Not seen: `doacross` loops, whose functions
//! are variadic, and libgomp linked into the program.

use crate::process;
use crate::real::Slot;
use core::ffi::{CStr, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

type Ptr = *mut c_void;
/// What regions and tasks run.
pub type Body = unsafe extern "C-unwind" fn(Ptr);
/// Copies a task's argument.
pub type Copier = unsafe extern "C-unwind" fn(Ptr, Ptr);

/// What a thread waits for or wakes others by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The others of its team: a barrier, or their turns in an ordered loop.
    Team,
    /// Tasks.
    Tasks,
    /// A lock; its address, or 0 for the one of unnamed critical sections.
    Lock(usize),
}

/// A runtime that knows about teams.
pub trait Team: Sized + 'static {
    /// What a task takes along from where it was created.
    type Token: Copy;

    /// Calls `call` with a body in place of the program's, which must run that.
    ///
    /// # Safety
    /// `call` runs the body that it is given on threads of a team, and is over with it when it returns.
    unsafe fn region<R>(body: Body, data: Ptr, call: impl FnOnce(Body, Ptr) -> R) -> R;
    /// Surrounds what may have to wait. Tasks may run inside it.
    fn waiting<R>(meeting: Meeting, call: impl FnOnce() -> R) -> R;
    /// The calling thread is about to take a lock that is free.
    #[inline(always)]
    fn taking() {}
    /// The calling thread is about to do what others may wait for.
    #[inline(always)]
    fn waking(meeting: Meeting) {
        let _ = meeting;
    }
    /// A task is about to be created; `None` leaves it as it is.
    fn creates_task() -> Option<Self::Token>;
    /// Runs a task's body.
    ///
    /// # Safety
    /// As for the body itself.
    unsafe fn run_task(token: Self::Token, body: Body, data: Ptr);
}

/// The real function of a name. It exists: the program was linked with the library that has it.
#[inline(always)]
pub fn real(slot: &'static Slot, name: &'static CStr) -> Ptr {
    let found = slot.get(name);
    if found.is_null() { among_loaded(slot, name) } else { found }
}

/// libgomp was loaded by `dlopen` for one library alone: it is not among what the linker looks through for us.
#[cold]
fn among_loaded(slot: &'static Slot, name: &'static CStr) -> Ptr {
    struct Search {
        name: &'static CStr,
        found: Ptr,
    }
    unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: usize, search: *mut c_void) -> i32 {
        // SAFETY: the linker passes a live record with a terminated name, and our own argument.
        unsafe {
            let search = &mut *search.cast::<Search>();
            let path = (*info).dlpi_name;
            let is_omp = |path: &[u8]| path.windows(7).any(|part| part == b"libgomp" || part == b"libomp.");
            if path.is_null() || !is_omp(CStr::from_ptr(path).to_bytes()) {
                return 0;
            }
            let library = libc::dlopen(path, libc::RTLD_LAZY | libc::RTLD_NOLOAD);
            if !library.is_null() {
                // The library stays loaded from now on.
                search.found = libc::dlsym(library, search.name.as_ptr());
            }
            i32::from(!search.found.is_null())
        }
    }
    let mut search = Search { name, found: core::ptr::null_mut() };
    // SAFETY: the function matches, and the argument outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
    if search.found.is_null() {
        process::complain("a function of OpenMP was called that no library has");
        // SAFETY: no preconditions. There is nothing to call.
        unsafe { libc::abort() }
    }
    slot.put(search.found);
    search.found
}

/// Whether a lock of libgomp (a futex word of its own) is free, as far as its word tells.
#[inline(always)]
fn is_free(lock: Ptr) -> bool {
    // SAFETY: the program is about to take this lock, so it is mapped and starts with its word.
    unsafe { (*lock.cast::<AtomicU32>()).load(Relaxed) == 0 }
}

/// Takes a lock: a wait unless it is free.
#[inline(always)]
pub fn locking<T: Team, R>(lock: Ptr, call: impl FnOnce() -> R) -> R {
    if is_free(lock) {
        T::taking();
        return call();
    }
    T::waiting(Meeting::Lock(lock as usize), call)
}

/// What stands before a task's own argument.
#[repr(C)]
struct Head<T> {
    body: Body,
    copy: Option<Copier>,
    /// The program's argument: its size, and where it is while the task is being created.
    bytes: usize,
    from: Ptr,
    token: T,
}

/// Largest alignment of an argument that a head can stand before.
const ALIGN_MAX: usize = 64;

/// Room for the head.
const fn head_bytes<T>() -> usize {
    size_of::<Head<T>>().next_multiple_of(ALIGN_MAX)
}

unsafe extern "C-unwind" fn run<T: Team>(head: Ptr) {
    // SAFETY: `copy` has put the program's argument behind the head.
    unsafe {
        let head = head.cast::<Head<T::Token>>();
        let data = head.cast::<u8>().add(head_bytes::<T::Token>()).cast();
        T::run_task((*head).token, (*head).body, data);
    }
}

unsafe extern "C-unwind" fn copy<T: Team>(to: Ptr, from: Ptr) {
    // SAFETY: libgomp has made room for head and argument at `to`; `from` is the head in `task`'s frame.
    unsafe {
        let (to, from) = (to.cast::<Head<T::Token>>(), from.cast::<Head<T::Token>>());
        to.write(from.read());
        let data = to.cast::<u8>().add(head_bytes::<T::Token>());
        match (*from).copy {
            Some(copy) => copy(data.cast(), (*from).from),
            None => core::ptr::copy_nonoverlapping((*from).from.cast::<u8>(), data, (*from).bytes),
        }
    }
}

/// A task's body, argument and how to copy that, with its size and alignment.
pub type TaskParts = (Body, Ptr, Option<Copier>, usize, usize);

/// Calls `call` with a task of ours that runs the program's.
///
/// # Safety
/// As for `GOMP_task`.
#[inline(always)]
pub unsafe fn task<T: Team>(parts: TaskParts, call: impl FnOnce(TaskParts)) {
    let (body, data, copier, bytes, align) = parts;
    T::waking(Meeting::Tasks);
    match T::creates_task() {
        Some(token) if align <= ALIGN_MAX => {
            let head = Head { body, copy: copier, bytes, from: data, token };
            let room = head_bytes::<T::Token>() + bytes;
            call((run::<T>, (&raw const head).cast_mut().cast(), Some(copy::<T>), room, ALIGN_MAX));
        }
        _ => call(parts),
    }
}

/// Exports the entry points of libgomp for a [`Team`].
#[macro_export]
macro_rules! interpose_gomp {
    ($team:ty) => {
        #[doc(hidden)]
        #[allow(missing_docs, non_snake_case, clippy::missing_safety_doc, clippy::too_many_arguments)]
        pub mod farsight_gomp {
            use super::*;
            use $crate::gomp::{Body, Copier, Meeting, Team, locking, task};
            type TheTeam = $team;
            type Ptr = *mut core::ffi::c_void;

            $crate::gomp_regions! {
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
                // The data hold what libgomp itself reads, so they cannot be replaced: a region without our frame.
                // SAFETY: the program keeps the function's contract.
                unsafe { $crate::gomp_real!(GOMP_parallel_reductions as Real)(body, data, threads, flags) }
            }

            $crate::gomp_waits! {
                GOMP_barrier() -> (): Meeting::Team;
                GOMP_barrier_cancel() -> bool: Meeting::Team;
                GOMP_taskwait() -> (): Meeting::Tasks;
                GOMP_taskwait_depend(depend: Ptr) -> (): Meeting::Tasks;
                GOMP_taskgroup_end() -> (): Meeting::Tasks;
                GOMP_loop_end() -> (): Meeting::Team;
                GOMP_loop_end_cancel() -> bool: Meeting::Team;
                GOMP_sections_end() -> (): Meeting::Team;
                GOMP_sections_end_cancel() -> bool: Meeting::Team;
                GOMP_single_copy_start() -> Ptr: Meeting::Team;
                GOMP_ordered_start() -> (): Meeting::Team;
                GOMP_critical_start() -> (): Meeting::Lock(0);
            }
            $crate::gomp_locks! {
                GOMP_critical_name_start(lock);
                omp_set_lock(lock);
                omp_set_nest_lock(lock);
            }
            $crate::gomp_wakes! {
                GOMP_critical_end(): Meeting::Lock(0);
                GOMP_critical_name_end(lock: Ptr): Meeting::Lock(lock as usize);
                omp_unset_lock(lock: Ptr): Meeting::Lock(lock as usize);
                omp_unset_nest_lock(lock: Ptr): Meeting::Lock(lock as usize);
                GOMP_ordered_end(): Meeting::Team;
                GOMP_single_copy_end(data: Ptr): Meeting::Team;
            }

            #[unsafe(no_mangle)]
            pub unsafe extern "C-unwind" fn GOMP_task(
                body: Body,
                data: Ptr,
                copy: Option<Copier>,
                bytes: i64,
                align: i64,
                deferred: bool,
                flags: u32,
                depend: Ptr,
                priority: i32,
                detach: Ptr,
            ) {
                type Real = unsafe extern "C-unwind" fn(
                    Body, Ptr, Option<Copier>, i64, i64, bool, u32, Ptr, i32, Ptr,
                );
                /// The task's argument holds an event that libgomp fills in: it must stay where it is.
                const DETACH: u32 = 1 << 13;
                let real = |(body, data, copy, bytes, align): $crate::gomp::TaskParts| {
                    // SAFETY: the program keeps the function's contract.
                    unsafe {
                        $crate::gomp_real!(GOMP_task as Real)(
                            body, data, copy, bytes as i64, align as i64, deferred, flags, depend, priority, detach,
                        )
                    }
                };
                let parts = (body, data, copy, bytes as usize, align as usize);
                if flags & DETACH != 0 {
                    return real(parts);
                }
                // SAFETY: as above.
                unsafe { task::<TheTeam>(parts, real) }
            }
        }
    };
}

/// The real function of that name, as a function of that type.
#[doc(hidden)]
#[macro_export]
macro_rules! gomp_real {
    ($name:ident as $type:ty) => {{
        static SLOT: $crate::real::Slot = $crate::real::Slot::new();
        const NAME: &core::ffi::CStr =
            match core::ffi::CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => c"",
            };
        // libgomp's function of that name has this type; the program was linked with it.
        core::mem::transmute::<Ptr, $type>($crate::gomp::real(&SLOT, NAME))
    }};
}

#[doc(hidden)]
#[macro_export]
macro_rules! gomp_regions {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name(body: Body, data: Ptr $(, $arg: $type)*) {
            type Real = unsafe extern "C-unwind" fn(Body, Ptr $(, $type)*);
            // SAFETY: the program keeps the function's contract; the body is replaced by one that runs it.
            unsafe {
                TheTeam::region(body, data, |body, data| {
                    $crate::gomp_real!($name as Real)(body, data $(, $arg)*)
                })
            }
        }
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! gomp_waits {
    ($($name:ident($($arg:ident: $type:ty),*) -> $result:ty: $meeting:expr;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) -> $result {
            type Real = unsafe extern "C-unwind" fn($($type),*) -> $result;
            // SAFETY: the program keeps the function's contract.
            TheTeam::waiting($meeting, || unsafe { $crate::gomp_real!($name as Real)($($arg),*) })
        }
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! gomp_locks {
    ($($name:ident($lock:ident);)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($lock: Ptr) {
            type Real = unsafe extern "C-unwind" fn(Ptr);
            // SAFETY: the program keeps the function's contract.
            locking::<TheTeam, ()>($lock, || unsafe { $crate::gomp_real!($name as Real)($lock) })
        }
    )* };
}

#[doc(hidden)]
#[macro_export]
macro_rules! gomp_wakes {
    ($($name:ident($($arg:ident: $type:ty),*): $meeting:expr;)*) => { $(
        #[unsafe(no_mangle)]
        pub unsafe extern "C-unwind" fn $name($($arg: $type),*) {
            type Real = unsafe extern "C-unwind" fn($($type),*);
            TheTeam::waking($meeting);
            // SAFETY: the program keeps the function's contract.
            unsafe { $crate::gomp_real!($name as Real)($($arg),*) }
        }
    )* };
}
