//! The engine with the growth client, as one image: what the launcher maps into the program.
#![no_std]
#![no_main]

#[path = "../../image.rs"]
mod image;

use growth_rt::Growth;
use wire::boot::Boot;

/// Where the launcher points the program: `rdi` holds the boot block, the stack is a temporary one.
#[unsafe(no_mangle)]
extern "C" fn _start(boot: *const Boot) -> ! {
    // SAFETY: the launcher passes its boot block, whose mapping has the layout of `wire::growth`.
    unsafe {
        engine::boot::boot(boot, |b| {
            Growth::new(b).unwrap_or_else(|| engine::bug::report(b"no address space for shadow memory", 0, 0))
        })
    }
}
