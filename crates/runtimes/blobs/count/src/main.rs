//! The engine with the counting client, as one image: what the launcher maps into the program.
#![no_std]
#![no_main]

#[path = "../../image.rs"]
mod image;

use count_rt::{Count, CountFunctions, Running};
use wire::boot::{Boot, flags};

/// Where the launcher points the program: `rdi` holds the boot block, the stack is a temporary one.
#[unsafe(no_mangle)]
extern "C" fn _start(boot: *const Boot) -> ! {
    // SAFETY: the launcher passes its boot block, whose mapping has the layout of `wire::count`; it answers questions
    // about functions when it asks for them.
    unsafe {
        if (*boot).flags & flags::FUNCTIONS != 0 {
            engine::boot::boot(boot, |b| CountFunctions::new(b))
        } else if (*boot).flags & flags::RUNNING != 0 {
            engine::boot::boot(boot, |b| Running::new(b))
        } else {
            engine::boot::boot(boot, |b| Count::new(b))
        }
    }
}
