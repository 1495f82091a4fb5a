//! The engine with the logging client, as one image: what the launcher maps into the program.
#![no_std]
#![no_main]

#[path = "../../mem.rs"]
mod mem;

use log_rt::Log;
use engine::bug::Line;
use engine::heap::Heap;
use wire::boot::Boot;

#[global_allocator]
static HEAP: Heap = Heap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    let mut line = Line::new().text(b"farsight: engine bug: panic");
    if let Some(l) = info.location() {
        line = line.text(b" at ").text(l.file().as_bytes()).text(b":").hex(l.line().into());
    }
    line.print();
    engine::sys::exit_group(engine::bug::EXIT_BUG)
}

/// Where the launcher points the program: `rdi` holds the boot block, the stack is a temporary one.
#[unsafe(no_mangle)]
extern "C" fn _start(boot: *const Boot) -> ! {
    // SAFETY: the launcher passes its boot block, whose mapping has the layout of `wire::log`.
    unsafe { engine::boot::boot(boot, |b| Log::new(b)) }
}

/// Referenced by precompiled `core`; never called, since panics abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Likewise.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    engine::sys::exit_group(engine::bug::EXIT_BUG)
}
