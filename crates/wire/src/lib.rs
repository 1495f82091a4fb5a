//! What the code inside the profiled program and the tools outside agree on: layouts of shared memory and of
//! the block that starts the engine, nothing else.
//!
//! # Rules
//! - `no_std`, no dependencies, no I/O, plain `repr(C)` data only: both columns include this crate.
//! - A change to any layout bumps [`VERSION`]. The engine refuses a boot block of another version, and the
//!   collector refuses shared memory of another version.
#![no_std]
#![forbid(unsafe_code)]

pub mod boot;
pub mod causal;
pub mod count;
pub mod follow;
pub mod growth;
pub mod idle;
pub mod log;
pub mod running;
pub mod seats;
pub mod slab;
pub mod strand;

/// Version of every layout in this crate.
pub const VERSION: u32 = 7;

/// A structure that one program writes while another reads it: made of atomics alone, valid for any bytes. Only
/// layouts of this crate implement it.
pub trait Layout: Sync {}

impl Layout for causal::Shared {}
impl Layout for follow::Control {}
impl Layout for seats::Lobby {}
