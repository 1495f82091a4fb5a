//! Filled in next.
#![no_std]
