//! Threads: creating them (with their start routine wrapped) and waiting for their end.

use super::waiting;
use crate::abi::*;
use crate::hooks::{Hooks, Interest, WaitKind};
use crate::{process, real, thread};
use core::mem::transmute;

/// First frame of a thread that the program created with `pthread_create`.
unsafe extern "C-unwind" fn run<H: Hooks>(slot: Ptr) -> Ptr {
    let (routine, argument) = thread::arrive::<H>(slot);
    // SAFETY: the pair that the program gave to `pthread_create`.
    unsafe { transmute::<Ptr, unsafe extern "C-unwind" fn(Ptr) -> Ptr>(routine)(argument) }
}

/// First frame of a thread that the program created with `thrd_create`.
unsafe extern "C-unwind" fn run_c11<H: Hooks>(slot: Ptr) -> Int {
    let (routine, argument) = thread::arrive::<H>(slot);
    // SAFETY: the pair that the program gave to `thrd_create`.
    unsafe { transmute::<Ptr, unsafe extern "C-unwind" fn(Ptr) -> Int>(routine)(argument) }
}

/// Wraps `pthread_create`.
pub unsafe fn pthread_create<H: Hooks>(out: Ptr, attr: Ptr, start: Ptr, arg: Ptr) -> Int {
    process::start::<H>();
    // SAFETY: the caller's contract; the slot lives for ever and is the new thread's alone.
    unsafe {
        let Some((parent, slot)) = thread::announce::<H>(attr, start, arg) else {
            return real::pthread_create(out, attr, start, arg);
        };
        let code = real::pthread_create(out, attr, run::<H> as *const () as Ptr, slot as *const _ as Ptr);
        if code != 0 {
            thread::renounce::<H>(parent, slot);
        }
        code
    }
}

/// Wraps `thrd_create`, which does not go through `pthread_create` inside libc.
pub unsafe fn thrd_create<H: Hooks>(out: Ptr, start: Ptr, arg: Ptr) -> Int {
    process::start::<H>();
    // SAFETY: as in `pthread_create`.
    unsafe {
        let Some((parent, slot)) = thread::announce::<H>(core::ptr::null_mut(), start, arg) else {
            return real::thrd_create(out, start, arg);
        };
        let code = real::thrd_create(out, run_c11::<H> as *const () as Ptr, slot as *const _ as Ptr);
        if code != 0 {
            thread::renounce::<H>(parent, slot);
        }
        code
    }
}

macro_rules! joins {
    ($($name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>(t: Word, result: Ptr $(, $arg: $type)*) -> Int {
                // SAFETY: the caller's contract.
                waiting::<H, Int>(Interest::SYNC, WaitKind::Join, t, |code| code == 0, || unsafe {
                    real::$name(t, result $(, $arg)*)
                })
            }
        )*
    };
}
joins! {
    pthread_join();
    pthread_timedjoin_np(until: Ptr);
    pthread_clockjoin_np(clock: Int, until: Ptr);
    thrd_join();
}

/// Wraps `pthread_tryjoin_np`, which never waits.
pub unsafe fn pthread_tryjoin_np<H: Hooks>(t: Word, result: Ptr) -> Int {
    // SAFETY: the caller's contract.
    unsafe { real::pthread_tryjoin_np(t, result) }
}
