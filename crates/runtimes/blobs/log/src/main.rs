//! The engine with the logging client, as one image: what the launcher maps into the program.
#![no_std]
#![no_main]

#[path = "../../image.rs"]
mod image;

use log_rt::Log;
use wire::boot::Boot;

/// Where the launcher points the program: `rdi` holds the boot block, the stack is a temporary one.
#[unsafe(no_mangle)]
extern "C" fn _start(boot: *const Boot) -> ! {
    // SAFETY: the launcher passes its boot block, whose mapping has the layout of `wire::log`.
    unsafe { engine::boot::boot(boot, |b| Log::new(b)) }
}
