//! Where instructions are counted: which code is ours, and the hooks of twins.
//!
//! The engine leaves out instructions of ranges that it is told of: this library, and in the program what rewriting has
//! put there (sections `farsight_text` and `farsight_own`). A function of straight code has a twin, whose hooks are calls that the
//! compiler does not know of: every register and the flags are as they were when they return. So a twin executes what the
//! serial elision does, and nothing is taken off its strands.
//!
//! # Rules
//! - A range is told of before code in it runs.
//! - The hooks of twins are called with the site in rax, below the red zone, with the stack aligned in any way.

use crate::cilk::{self, Site};
use crate::main_thread::Main;
use core::ffi::{c_char, c_void};
use core::sync::atomic::Ordering;
use span_rt::clock;
use span_rt::env::{Cost, settings};
use std::sync::{Mutex, PoisonError};

type Range = [u64; 2];

static RANGES: Mutex<Vec<Range>> = Mutex::new(Vec::new());

/// Tells the engine of `more` code of ours.
fn tell(more: impl Iterator<Item = Range>) {
    let mut ranges = RANGES.lock().unwrap_or_else(PoisonError::into_inner);
    ranges.extend(more.filter(|r| r[0] < r[1]));
    ranges.sort_unstable();
    ranges.dedup();
    // The engine keeps the address.
    let table: &'static [Range] = ranges.clone().leak();
    // SAFETY: who answers reads the table, which stays.
    unsafe { clock::ask_engine(*b"FSOURCOD", table.as_ptr() as i64, table.len() as i64) };
}

/// This library is ours. To be called before anything else in it.
pub fn own_library() {
    if settings().cost != Cost::Instructions {
        return;
    }
    let inside = own_library as fn() as usize as u64;
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let ranges = maps.lines().filter_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let (end, _) = rest.split_once(' ')?;
        let range = [start, end].map(|a| u64::from_str_radix(a, 16).unwrap_or(0));
        (range[0]..range[1]).contains(&inside).then_some(range)
    });
    tell(ranges);
}

/// Code of ours in the program, as pairs of addresses; whether instructions are counted.
///
/// # Safety
/// `pairs` to `end` are pairs of addresses, or nothing.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn farsight_own_code(pairs: *const Range, end: *const Range) -> c_char {
    if settings().cost != Cost::Instructions {
        return 0;
    }
    let len = (end as usize).saturating_sub(pairs as usize) / size_of::<Range>();
    if len > 0 {
        // SAFETY: by contract.
        tell(unsafe { core::slice::from_raw_parts(pairs, len) }.iter().copied());
    }
    1
}

/// Nothing is taken off the strand that ends.
fn exactly(hook: impl FnOnce()) {
    if let Some(main) = Main::get() {
        main.begun = main.begun.wrapping_sub(clock::HOOK.load(Ordering::Relaxed));
    }
    hook();
}

/// # Safety
/// `site` is one that the rewriter made.
unsafe fn at(site: *const Site, hook: impl FnOnce(&Site)) {
    // SAFETY: by contract.
    exactly(|| hook(unsafe { &*site }));
}

extern "C" fn spawn(site: *const Site) {
    // SAFETY: called by twins.
    unsafe { at(site, |site| cilk::spawn(site, false)) };
}

extern "C" fn call(site: *const Site) {
    // SAFETY: called by twins.
    unsafe { at(site, |site| cilk::call(site, false)) };
}

extern "C" fn begin(site: *const Site) {
    // SAFETY: called by twins.
    unsafe { at(site, cilk::begin_twin) };
}

extern "C" fn enter(site: *const Site) {
    // SAFETY: called by twins.
    unsafe { at(site, cilk::enters) };
}

extern "C" fn sync(_: *const c_void) {
    exactly(|| cilk::sync(false));
}

extern "C" fn returns(_: *const c_void) {
    exactly(cilk::return_twin);
}

extern "C" fn child_end(_: *const c_void) {
    exactly(|| cilk::child_end(false));
}

extern "C" fn leave(_: *const c_void) {
    exactly(|| cilk::leaves(false));
}

/// An entry: keeps every register that a call may change, the vector ones by `xsave`, and calls with rax as the argument.
macro_rules! entry {
    ($name:ident, $target:ident) => {
        /// Called by twins; see above.
        ///
        /// # Safety
        /// Not a function that a compiler could call.
        #[unsafe(no_mangle)]
        #[unsafe(naked)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                "pushfq",
                "push rax",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                "push rbp",
                "push rbx",
                "cld",
                "mov rbx, rsp",
                "mov rbp, rax",
                "sub rsp, 8192",
                "and rsp, -64",
                // The header of the area must be zero.
                "lea rdi, [rsp + 512]",
                "xor eax, eax",
                "mov ecx, 8",
                "rep stosq",
                "mov eax, -1",
                "mov edx, -1",
                "xsave64 [rsp]",
                "mov rdi, rbp",
                "call {target}",
                "mov eax, -1",
                "mov edx, -1",
                "xrstor64 [rsp]",
                "mov rsp, rbx",
                "pop rbx",
                "pop rbp",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "popfq",
                "ret",
                target = sym $target,
            )
        }
    };
}

entry!(farsight_counted_spawn, spawn);
entry!(farsight_counted_call, call);
entry!(farsight_counted_begin, begin);
entry!(farsight_counted_enter, enter);
entry!(farsight_counted_sync, sync);
entry!(farsight_counted_return, returns);
entry!(farsight_counted_child_end, child_end);
entry!(farsight_counted_leave, leave);
