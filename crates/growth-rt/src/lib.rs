//! The client behind `farsight growth`.
#![no_std]
extern crate alloc;
pub mod layout;
pub mod shadow;
pub mod shared;
pub mod table;
