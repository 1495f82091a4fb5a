//! What every image that the launcher maps needs beside its client: memory functions, an allocator, and somewhere for
//! panics to go.

use engine::heap::Heap;

#[path = "mem.rs"]
mod mem;

#[global_allocator]
static HEAP: Heap = Heap::new();

#[panic_handler]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    engine::bug::panicked(info)
}

/// Referenced by precompiled `core`; never called, since panics abort.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// Likewise.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    engine::sys::exit_group(engine::bug::EXIT_BUG)
}
