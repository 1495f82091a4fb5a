//! Where libomp asks for tools; see `idle_rt::ompt`.

use core::ffi::c_char;
use idle_rt::ompt::TOOL;
use preload::ompt::Tool;

/// Called by libomp when it starts.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(_: u32, _: *const c_char) -> *const Tool {
    &TOOL
}
