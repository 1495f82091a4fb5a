//! The table against the kernel: real calls on canary-filled memory, compared byte by byte with what the table says.
//!
//! Each call is made twice, on memory filled with two different canaries: a byte that differs from its canary in either
//! run was written. The union of the ranges that the table calls written must be exactly those bytes; where a call is
//! marked `covers`, it may say more (padding, or data that happens to be as before).

mod arena;
mod files;
mod names;
mod process;
mod sockets;
mod time;
mod vectors;
