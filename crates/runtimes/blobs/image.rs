//! What every image that the launcher maps needs beside its client: memory functions, an allocator, and somewhere for
//! panics to go.

use engine::bug::Line;
use engine::heap::Heap;

#[path = "mem.rs"]
mod mem;

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

/// Referenced by precompiled `core`; never called, since panics abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Likewise.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    engine::sys::exit_group(engine::bug::EXIT_BUG)
}
