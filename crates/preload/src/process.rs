//! The life of the process: start, fork, and every ending.
//!
//! ```text
//! new --constructor or first pthread_create--> starting --hooks agree--> active
//!                                                  \--hooks refuse--> off
//! active --fork, in the child--> off (or active again, if the hooks follow)
//! ```
//! `vfork` children share our memory while their parent sleeps; they are told apart by the process id and
//! never end the parent's profile. A child made without libc's `fork` (raw `clone`) finds a page that the
//! kernel wipes in children, and counts as off.
//!
//! Endings reach the hooks from our destructor (`exit`, return from `main`), from the wrappers of `_exit`,
//! `_Exit`, `quick_exit`, `abort` and `exec*`, and from `syscall(SYS_exit_group)`. A fatal signal or an ending
//! inside libc reaches nobody: runtimes that must not lose data then keep it in a shared arena.

use crate::abi::Ptr;
use crate::hooks::{AfterFork, Ending, Executing, Hooks};
use crate::{env, errno, real, sys, thread};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering::*};

const NEW: u32 = 0;
const STARTING: u32 = 1;
const ACTIVE: u32 = 2;
const OFF: u32 = 3;

static STATE: AtomicU32 = AtomicU32::new(NEW);
static PID: AtomicU32 = AtomicU32::new(0);
/// A page that reads 1 here and 0 in any forked child.
static HERE: AtomicPtr<AtomicU32> = AtomicPtr::new(ptr::null_mut());

/// Whether hooks are called in this process.
#[inline]
pub fn active() -> bool {
    STATE.load(Acquire) == ACTIVE && here()
}

/// Whether hooks will never be called in this process.
pub(crate) fn off() -> bool {
    STATE.load(Relaxed) == OFF
}

/// Stops calling hooks for threads not met yet, and says why on standard error.
pub fn disable(reason: &str) {
    STATE.store(OFF, Release);
    complain(reason);
}

/// One line on standard error.
pub fn complain(reason: &str) {
    sys::write_all(2, b"farsight: ");
    sys::write_all(2, reason.as_bytes());
    sys::write_all(2, b"; the program runs on without being profiled\n");
}

/// Starts the runtime, once. From our constructor, or from the first `pthread_create` if that comes earlier.
pub fn start<H: Hooks>() {
    if STATE.compare_exchange(NEW, STARTING, AcqRel, Relaxed).is_err() {
        return;
    }
    extern "C" fn child<H: Hooks>() {
        forked_child::<H>();
    }
    real::look_up_all();
    let stack_top = env::array() as usize;
    if !H::keep_preload() {
        env::remove_own_entry(start::<H> as *const ());
    }
    PID.store(sys::getpid(), Relaxed);
    mark_here();
    // SAFETY: registers a function that stays loaded (a preloaded library is never unloaded).
    let forks = unsafe { libc::pthread_atfork(None, None, Some(child::<H>)) } == 0;
    if !forks || !thread::prepare::<H>() {
        disable("no memory or thread key for the profiler");
    } else if !H::start() {
        STATE.store(OFF, Release);
    } else {
        STATE.store(ACTIVE, Release);
        thread::meet_main::<H>(stack_top);
    }
}

/// The image is about to end.
pub fn ending<H: Hooks>(ending: Ending) {
    // The process id tells a `vfork` child, which shares everything else, from its parent.
    if STATE.load(Acquire) == ACTIVE && sys::getpid() == PID.load(Relaxed) {
        errno::preserve(|| H::ending(ending));
    }
}

/// An `exec` function was called, with these first arguments.
pub fn executing<H: Hooks>(function: &str, [first, second, third]: [Ptr; 3]) {
    let own = env::array().cast_const().cast();
    let (path, environment) = match function {
        "execve" | "execvpe" => (first, third.cast_const().cast()),
        "execv" | "execvp" | "execl" | "execlp" => (first, own),
        // Its environment stands behind the arguments.
        "execle" => (first, ptr::null()),
        "execveat" => (second, ptr::null()),
        _ => return,
    };
    // SAFETY: the program calls the function of that name with arguments of its types.
    unsafe { will_execute::<H>(path, function.contains('p'), environment) };
}

/// A program is about to be executed; `environment` is null where it is not known.
///
/// # Safety
/// `path` must be a terminated string, `environment` null or an array of such that ends with null.
pub unsafe fn will_execute<H: Hooks>(path: Ptr, searched: bool, environment: *const *const libc::c_char) {
    if path.is_null() || !active() {
        return;
    }
    // SAFETY: by contract.
    let path = unsafe { sys::c_bytes(path.cast()) };
    let led = H::LEADS.is_empty() || environment.is_null() || {
        let mut at = environment;
        let mut found = false;
        // SAFETY: by contract; stops at the terminating null.
        unsafe {
            while !(*at).is_null() && !found {
                let entry = sys::c_bytes(*at);
                found = entry.strip_prefix(H::LEADS.to_bytes()).is_some_and(|rest| rest.starts_with(b"="));
                at = at.add(1);
            }
        }
        found
    };
    errno::preserve(|| H::executing(Executing { path, searched, led }));
}

fn mark_here() {
    const PAGE: usize = 4096;
    if let Ok(page) = sys::map_anonymous(PAGE) {
        let word = page.cast::<AtomicU32>();
        // SAFETY: a fresh page, aligned, never unmapped.
        unsafe { (*word).store(1, Relaxed) };
        let _ = sys::advise(page, PAGE, libc::MADV_WIPEONFORK);
        HERE.store(word, Release);
    }
}

#[inline]
fn here() -> bool {
    // SAFETY: null or the page made in `mark_here`.
    unsafe { HERE.load(Relaxed).as_ref() }.is_none_or(|word| word.load(Relaxed) == 1)
}

fn forked_child<H: Hooks>() {
    if STATE.load(Relaxed) != ACTIVE {
        return;
    }
    STATE.store(OFF, Release);
    let thread = thread::known::<H::Local>();
    thread.inspect(|t| t.forked());
    errno::preserve(|| match H::forked(thread) {
        AfterFork::Leave => thread::leave_alone(),
        AfterFork::Follow => {
            PID.store(sys::getpid(), Relaxed);
            mark_here();
            thread::forget_others::<H>();
            STATE.store(ACTIVE, Release);
        }
    });
}
