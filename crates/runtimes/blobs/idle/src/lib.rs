//! The idleness runtime as the library that is preloaded.

preload::interpose!(idle_rt::Idle);

pub mod gomp;
pub mod ompt;
pub mod yields;
