//! The functions after which nothing of ours runs any more, those that begin another program, and `dlclose`, after which
//! some code is gone.

use crate::abi::*;
use crate::hooks::{Ending, Hooks};
use crate::{errno, process, real};

macro_rules! endings {
    ($($ending:ident: $name:ident($($arg:ident: $type:ty),*);)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>($($arg: $type),*) -> Int {
                process::ending::<H>(Ending::$ending);
                // SAFETY: the caller's contract; the real function does not return.
                unsafe { real::$name($($arg),*) }
            }
        )*
    };
}
endings! {
    Immediate: _exit(status: Int);
    Immediate: _Exit(status: Int);
    Immediate: quick_exit(status: Int);
    Abort: abort();
}

macro_rules! spawns {
    ($($name:ident: $searched:literal;)*) => {
        $(
            #[doc = concat!("Wraps `", stringify!($name), "`.")]
            pub unsafe fn $name<H: Hooks>(pid: Ptr, path: Ptr, actions: Ptr, attr: Ptr, args: Ptr, env: Ptr) -> Int {
                // SAFETY: the caller's contract.
                unsafe {
                    process::will_execute::<H>(path, $searched, env.cast_const().cast());
                    real::$name(pid, path, actions, attr, args, env)
                }
            }
        )*
    };
}
spawns! {
    posix_spawn: false;
    posix_spawnp: true;
}

/// Wraps `dlclose`. (`dlopen` is not wrapped: it looks at its caller to find libraries.)
pub unsafe fn dlclose<H: Hooks>(handle: Ptr) -> Int {
    let tell = |closed| {
        if process::active() {
            errno::preserve(|| H::unloading(closed));
        }
    };
    tell(false);
    // SAFETY: the caller's contract.
    let code = unsafe { real::dlclose(handle) };
    tell(true);
    code
}
