//! The causal runtime, as a library to preload. Nothing here but the exports.

use causal_rt::Causal;

pub use causal_rt::points::*;

preload::interpose!(Causal);
preload::interpose_gomp!(Causal);

/// Called by libomp when it starts; see `causal_rt::team`.
#[unsafe(no_mangle)]
pub extern "C" fn ompt_start_tool(_: u32, _: *const core::ffi::c_char) -> *const preload::ompt::Tool {
    &causal_rt::team::TOOL
}
