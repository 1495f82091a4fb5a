//! OpenMP's tools interface (OMPT) as clang's libomp has it: the runtime asks every library that exports
//! `ompt_start_tool` whether it wants to know, and then calls back. Types and numbers only; who answers and what the
//! callbacks do is the runtime's business.

use core::ffi::{c_char, c_void};

/// `ompt_data_t`: a word of the tool's own.
pub type Data = u64;
/// A function of the type that its event has.
pub type Callback = *const c_void;
/// Finds functions of the runtime by name.
pub type LookUp = unsafe extern "C" fn(*const c_char) -> *const c_void;
type Initialize = unsafe extern "C" fn(LookUp, i32, *mut Data) -> i32;
type SetCallback = unsafe extern "C" fn(i32, Callback) -> i32;

/// `ompt_callbacks_t`.
pub mod event {
    /// A thread has met a region.
    pub const PARALLEL_BEGIN: i32 = 3;
    /// The region is over.
    pub const PARALLEL_END: i32 = 4;
    /// A task is created.
    pub const TASK_CREATE: i32 = 5;
    /// A thread turns from a task to another.
    pub const TASK_SCHEDULE: i32 = 6;
    /// A thread of a team begins or ends its part.
    pub const IMPLICIT_TASK: i32 = 7;
    /// A thread waits for others of its team.
    pub const SYNC_REGION_WAIT: i32 = 16;
    /// A lock is let go.
    pub const MUTEX_RELEASED: i32 = 17;
    /// A thread is about to take a lock.
    pub const MUTEX_ACQUIRE: i32 = 26;
    /// It has it.
    pub const MUTEX_ACQUIRED: i32 = 27;
}

/// `ompt_scope_begin`; the other end is 2.
pub const BEGIN: i32 = 1;
/// Flag of an implicit task that no region has made.
pub const INITIAL: i32 = 1;

/// `ompt_start_tool_result_t`.
#[repr(C)]
#[derive(Debug)]
pub struct Tool {
    initialize: Initialize,
    finalize: unsafe extern "C" fn(*mut Data),
    data: Data,
}

impl Tool {
    /// A tool that starts like this.
    pub const fn new(initialize: Initialize) -> Self {
        Self { initialize, finalize, data: 0 }
    }
}

unsafe extern "C" fn finalize(_: *mut Data) {}

/// Asks for events; 1 unless the runtime has no such thing, as `initialize` must answer.
///
/// # Safety
/// `look_up` is what the runtime passed, and each callback has its event's type.
pub unsafe fn set_callbacks(look_up: LookUp, wanted: &[(i32, Callback)]) -> i32 {
    // SAFETY: the interface of OpenMP 5: the name is known, and the function has this type; the rest is the caller's.
    unsafe {
        let set = look_up(c"ompt_set_callback".as_ptr());
        if set.is_null() {
            return 0;
        }
        let set = core::mem::transmute::<*const c_void, SetCallback>(set);
        for (event, callback) in wanted {
            set(*event, *callback);
        }
    }
    1
}
