//! What rewritten Cilk programs call; declared in `farsight/cilk_rt.h`.
//!
//! ```text
//! spawn … child_end     a task, around the spawned call
//! begin … return        a function that spawns: it waits for its children when it returns
//! call                  before a call of such a function: where it is called from
//! loop … loop_end       all iterations start where the loop starts, and it waits for them
//! ```
//! Each ends a strand and starts the next one with one reading of the clock: what happens here is in the strand that
//! follows, and taken off it.

use crate::main_thread::{Main, Pending};
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::{AtomicU32, Ordering};
use span_rt::sites::{self, Key};
use spandag::dump::{Kind, Place};
use spandag::serial::How;

/// A place in the source, made by the rewriter; `struct farsight_site`.
#[repr(C)]
pub struct Site {
    file: *const c_char,
    function: *const c_char,
    callee: *const c_char,
    line: u32,
    kind: u32,
    /// 0 until the site is first used.
    id: AtomicU32,
}

/// `struct farsight_guard`: true once.
#[repr(C)]
pub struct Guard {
    go: c_char,
}

const GO: Guard = Guard { go: 1 };

impl Site {
    #[inline(always)]
    fn id(&self) -> u32 {
        match self.id.load(Ordering::Relaxed) {
            0 => self.first(),
            id => id,
        }
    }

    #[cold]
    fn first(&self) -> u32 {
        let text = |p: *const c_char| {
            if p.is_null() {
                String::new()
            } else {
                // SAFETY: the rewriter makes literals of all texts.
                unsafe { CStr::from_ptr(p) }.to_string_lossy().into_owned()
            }
        };
        let id = sites::site(Key::Number(core::ptr::from_ref(self) as u64), || Place {
            kind: match self.kind {
                0 => Kind::Call,
                1 => Kind::Spawn,
                _ => Kind::Loop,
            },
            function: text(self.function),
            callee: text(self.callee),
            file: text(self.file),
            line: self.line,
            stack: Vec::new(),
        });
        self.id.store(id, Ordering::Relaxed);
        id
    }
}

fn enter(main: &mut Main, site: u32, how: How) {
    main.stack.enter_by(site, || sites::func(site), how);
}

/// A task starts.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_spawn(site: *const Site) -> Guard {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            main.whole_spawn();
            main.pending = Pending::Spawned;
            return GO;
        }
        main.pause();
        main.spawned = true;
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Spawned);
        main.pending = Pending::Spawned;
        main.resume();
    }
    GO
}

/// The task ends.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_child_end(_guard: *mut Guard) {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            main.whole_end();
            main.pending = Pending::Unknown;
            return;
        }
        main.pause();
        main.stack.leave();
        main.pending = Pending::Unknown;
        main.resume();
    }
}

/// The next function that begins is called here.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_call(site: *const Site) {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            return main.whole_aside();
        }
        // SAFETY: by contract.
        main.aside(|main| main.pending = Pending::Called(unsafe { &*site }.id()));
    }
}

/// A function that spawns begins.
///
/// # Safety
/// `function` is a literal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_begin(function: *const c_char, caller: *const c_void) -> Guard {
    let Some(main) = Main::get() else { return Guard { go: 0 } };
    // A spawned function uses the frame of its spawn, and that is left at the spawn's end.
    let own = main.pending != Pending::Spawned;
    if main.is_whole() {
        main.pending = Pending::Unknown;
        if own {
            main.whole_begin();
        } else {
            main.whole_aside();
        }
    } else if own {
        main.pause();
        let site = match main.pending {
            Pending::Called(site) => site,
            _ => sites::site(Key::Number(caller as u64), || Place {
                // SAFETY: by contract.
                callee: unsafe { CStr::from_ptr(function) }.to_string_lossy().into_owned(),
                stack: vec![caller as u64],
                ..Place::default()
            }),
        };
        enter(main, site, How::Called);
        main.pending = Pending::Unknown;
        main.resume();
    } else {
        main.aside(|main| main.pending = Pending::Unknown);
    }
    Guard { go: if own { 1 } else { 2 } }
}

/// It returns, having waited for its children.
///
/// # Safety
/// `guard` is what [`farsight_begin`] gave.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_return(guard: *mut Guard) {
    // SAFETY: by contract.
    let how = unsafe { (*guard).go };
    if let Some(main) = Main::get().filter(|_| how != 0) {
        if main.is_whole() {
            if how == 1 {
                main.whole_return();
            } else {
                main.whole_aside();
            }
        } else if how == 1 {
            main.pause();
            main.stack.leave();
            main.resume();
        } else {
            // A spawned function's children are waited for at the end of the task, which is next.
            main.aside(|_| ());
        }
    }
}

/// A function that does not spawn is called.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_enter(site: *const Site) -> Guard {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            main.whole_aside();
            return GO;
        }
        main.pause();
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Called);
        main.resume();
    }
    GO
}

/// It returns.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_leave(_guard: *mut Guard) {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            return main.whole_aside();
        }
        main.pause();
        main.stack.leave();
        main.resume();
    }
}

/// The function waits for its children.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_sync() {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            return main.whole_sync();
        }
        main.pause();
        main.stack.sync();
        main.resume();
    }
}

/// A parallel loop starts.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_loop(site: *const Site) -> Guard {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            main.whole_begin();
            return GO;
        }
        main.pause();
        main.spawned = true;
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Called);
        main.resume();
    }
    GO
}

/// It ends: its iterations have been waited for.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_loop_end(_guard: *mut Guard) {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            return main.whole_loop_end();
        }
        // What passed since the last iteration is the loop's own counting, which a parallel loop does by halving.
        main.stack.leave();
        main.restart();
    }
}

/// An iteration starts. The counting since the one before belongs to it: iterations do not wait for each other.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_iteration(site: *const Site) -> Guard {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            main.whole_iteration();
            return GO;
        }
        let counting = main.counted();
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Iteration);
        if let Some(cost) = counting {
            main.stack.strand(cost);
            main.restart();
        }
    }
    GO
}

/// It ends.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_iteration_end(_guard: *mut Guard) {
    if let Some(main) = Main::get() {
        if main.is_whole() {
            return main.whole_end();
        }
        main.pause();
        main.stack.leave();
        main.resume();
    }
}

/// Reports a cost when costs are reported by the program: for tests of the tool itself.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_spend(units: u64) {
    if let Some(main) = Main::get() {
        main.clock.spend(units);
    }
    span_rt::clock::spend(units);
}

/// A site for calibration, whose number means nothing: its stack is thrown away.
static NOWHERE: Nowhere = Nowhere(Site {
    file: core::ptr::null(),
    function: core::ptr::null(),
    callee: core::ptr::null(),
    line: 0,
    kind: 1,
    id: AtomicU32::new(1),
});

struct Nowhere(Site);
// SAFETY: its pointers are null.
unsafe impl Sync for Nowhere {}

/// As a program spawns.
#[inline(never)]
pub fn spawn_nothing() {
    // SAFETY: a site like those that the rewriter makes.
    unsafe { farsight_spawn(&raw const NOWHERE.0) };
}

/// As a task ends.
#[inline(never)]
pub fn end_nothing() {
    farsight_child_end(core::ptr::null_mut());
}

/// As a function waits.
#[inline(never)]
pub fn sync_nothing() {
    farsight_sync();
}
