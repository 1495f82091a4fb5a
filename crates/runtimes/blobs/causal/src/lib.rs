//! The causal runtime, as a library to preload. Nothing here but the exports.

use causal_rt::Causal;

pub use causal_rt::points::*;

preload::interpose!(Causal);
