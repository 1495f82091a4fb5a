//! The idleness runtime as the library that is preloaded.

preload::interpose!(idle_rt::Idle);
preload::interpose_gomp!(idle_rt::Idle);

pub mod ompt;
pub mod yields;
