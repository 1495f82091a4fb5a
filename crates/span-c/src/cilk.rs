//! What rewritten Cilk programs call to tell of call sites; declared in `farsight/cilk_rt.h`.
//!
//! ```text
//! spawn … child_end     a task, around the spawned call
//! begin … return        a function that spawns: it waits for its children when it returns
//! call                  before a call of such a function: where it is called from
//! loop … loop_end       all iterations start where the loop starts, and it waits for them
//! ```
//! `near` says that nothing but straight code follows ([`straight`](crate::straight)).
//!
//! Each ends a strand and starts the next one with one reading of the clock: what happens here is in the strand that
//! follows, and taken off it.

use crate::main_thread::{Main, Pending};
use core::ffi::{CStr, c_char, c_int, c_void};
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

/// A task starts. What keeps call sites is not inlined here and below, so that what does not needs few registers.
#[inline(always)]
pub(crate) fn spawn(site: &Site, near: bool) {
    if let Some(main) = Main::get() {
        main.pending = Pending::Spawned;
        main.near = near;
        if main.is_whole {
            main.whole_spawn(near);
        } else {
            main.spawned = true;
            at_site(main, site, near, How::Spawned);
        }
    }
}

/// A strand ends, and what is invoked at `site` starts.
#[inline(never)]
fn at_site(main: &mut Main, site: &Site, near: bool, how: How) {
    main.pause(near);
    enter(main, site.id(), how);
    main.resume();
}

/// It ends.
#[inline(never)]
fn leave(main: &mut Main, near: bool) {
    main.pause(near);
    main.stack.leave();
    main.resume();
}

/// The task ends.
#[inline(always)]
pub(crate) fn child_end(near: bool) {
    if let Some(main) = Main::get() {
        main.pending = Pending::Unknown;
        main.near = false;
        if main.is_whole { main.whole_end(near) } else { leave(main, near) }
    }
}

/// The next function that begins is called here.
#[inline(always)]
pub(crate) fn call(site: &Site, near: bool) {
    if let Some(main) = Main::get() {
        main.near = near;
        if main.is_whole {
            return main.whole_aside(near);
        }
        main.aside(near, |main| main.pending = Pending::Called(site.id()));
    }
}

/// What a function that begins leaves for its return.
mod frame {
    /// It is not the main thread.
    pub const NONE: i8 = 0;
    /// A frame of its own.
    pub const OWN: i8 = 1;
    /// The frame of the spawn that it was called by.
    pub const SPAWNED: i8 = 2;
    /// Beside these: called by straight code.
    pub const NEAR: i8 = 4;
}

/// A function that spawns begins. `near`: its own code is straight.
///
/// # Safety
/// `function` is a literal.
#[inline(always)]
unsafe fn begin(function: *const c_char, caller: *const c_void, near: bool) -> i8 {
    let Some(main) = Main::get() else { return frame::NONE };
    // What has passed since the last hook is the caller's.
    let from_near = core::mem::take(&mut main.near);
    if !from_near {
        main.straight.over();
    }
    // A spawned function uses the frame of its spawn, and that is left at the spawn's end.
    let own = main.pending != Pending::Spawned;
    if main.is_whole {
        main.pending = Pending::Unknown;
        if own {
            main.whole_begin(near);
        } else {
            main.whole_aside(near);
        }
    } else if own {
        // SAFETY: by contract.
        unsafe { begin_own(main, function, caller, near) };
    } else {
        main.aside(near, |main| main.pending = Pending::Unknown);
    }
    let how = if own { frame::OWN } else { frame::SPAWNED };
    how | if from_near { frame::NEAR } else { 0 }
}

/// # Safety
/// `function` is a literal.
#[inline(never)]
unsafe fn begin_own(main: &mut Main, function: *const c_char, caller: *const c_void, near: bool) {
    main.pause(near);
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
}

/// It returns, having waited for its children.
#[inline(always)]
fn returns(frame: i8) {
    let near = frame & frame::NEAR != 0;
    let how = frame & !frame::NEAR;
    if let Some(main) = Main::get().filter(|_| how != frame::NONE) {
        if main.is_whole {
            if how == frame::OWN {
                main.whole_return(near);
            } else {
                main.whole_aside(near);
            }
        } else if how == frame::OWN {
            leave(main, near);
        } else {
            // A spawned function's children are waited for at the end of the task, which is next.
            main.aside(near, |_| ());
        }
    }
}

/// A twin begins, whose return finds what it left by itself: there is no variable of it.
pub(crate) fn begin_twin(site: &Site) {
    let Some(main) = Main::get() else { return };
    let own = main.pending != Pending::Spawned;
    if main.is_whole {
        main.pending = Pending::Unknown;
        if own { main.whole_begin(false) } else { main.whole_aside(false) }
    } else if own {
        let site = if let Pending::Called(site) = main.pending { site } else { site.id() };
        main.pause(false);
        enter(main, site, How::Called);
        main.pending = Pending::Unknown;
    } else {
        main.aside(false, |main| main.pending = Pending::Unknown);
    }
    main.twins.push(if own { frame::OWN } else { frame::SPAWNED });
    // What the memory for it took, in other libraries, is nobody's.
    main.restart();
}

/// It returns, having waited for its children.
pub(crate) fn return_twin() {
    if let Some(frame) = Main::get().and_then(|main| main.twins.pop()) {
        returns(frame);
    }
}

/// A function that does not spawn is called.
#[inline(always)]
pub(crate) fn enters(site: &Site) {
    if let Some(main) = Main::get() {
        if main.is_whole {
            main.whole_aside(false);
        } else {
            at_site(main, site, false, How::Called);
        }
    }
}

/// It returns.
#[inline(always)]
pub(crate) fn leaves(near: bool) {
    if let Some(main) = Main::get() {
        if main.is_whole {
            return main.whole_aside(false);
        }
        leave(main, near);
    }
}

/// The function waits for its children.
#[inline(always)]
pub(crate) fn sync(near: bool) {
    if let Some(main) = Main::get() {
        if main.is_whole {
            return main.whole_sync(near);
        }
        wait(main, near);
    }
}

#[inline(never)]
fn wait(main: &mut Main, near: bool) {
    main.pause(near);
    main.stack.sync();
    main.resume();
}

/// A task starts. `near`: nothing but straight code follows.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_site_spawn(site: *const Site, near: c_int) {
    // SAFETY: by contract.
    spawn(unsafe { &*site }, near != 0);
}

/// The task ends.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_child_end(near: c_int) {
    child_end(near != 0);
}

/// The next function that begins is called here.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_site_call(site: *const Site, near: c_int) {
    // SAFETY: by contract.
    call(unsafe { &*site }, near != 0);
}

/// A function that spawns begins: what [`farsight_site_return`] wants to hear.
///
/// # Safety
/// `function` is a literal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_site_begin(
    function: *const c_char,
    caller: *const c_void,
    near: c_int,
) -> i8 {
    // SAFETY: by contract.
    unsafe { begin(function, caller, near != 0) }
}

/// It returns, having waited for its children.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_return(frame: i8) {
    returns(frame);
}

/// A function that does not spawn is called.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_site_enter(site: *const Site) {
    // SAFETY: by contract.
    enters(unsafe { &*site });
}

/// It returns.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_leave(near: c_int) {
    leaves(near != 0);
}

/// The function waits for its children.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_sync(near: c_int) {
    sync(near != 0);
}

/// A parallel loop starts.
///
/// # Safety
/// `site` is one that the rewriter made.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_site_loop(site: *const Site) {
    if let Some(main) = Main::get() {
        if main.is_whole {
            main.whole_begin(false);
            return;
        }
        main.pause(false);
        main.spawned = true;
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Called);
        main.resume();
    }
}

/// It ends: its iterations have been waited for.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_loop_end() {
    if let Some(main) = Main::get() {
        if main.is_whole {
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
pub unsafe extern "C" fn farsight_site_iteration(site: *const Site) {
    if let Some(main) = Main::get() {
        if main.is_whole {
            main.whole_iteration();
            return;
        }
        let counting = main.counted();
        // SAFETY: by contract.
        enter(main, unsafe { &*site }.id(), How::Iteration);
        if let Some(cost) = counting {
            main.stack.strand(cost);
            main.restart();
        }
    }
}

/// It ends.
#[unsafe(no_mangle)]
pub extern "C" fn farsight_site_iteration_end() {
    if let Some(main) = Main::get() {
        if main.is_whole {
            return main.whole_end(false);
        }
        main.pause(false);
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
pub fn spawn_nothing(near: bool) {
    // SAFETY: a site like those that the rewriter makes.
    unsafe { farsight_site_spawn(&raw const NOWHERE.0, near.into()) };
}

/// As a task ends.
#[inline(never)]
pub fn end_nothing(near: bool) {
    farsight_site_child_end(near.into());
}

/// As a function waits.
#[inline(never)]
pub fn sync_nothing(near: bool) {
    farsight_site_sync(near.into());
}
