//! `farsight growth` on programs whose sizes are known by hand, or whose growth is.

mod accesses;
mod classes;
mod costs;
mod edges;
mod input;
mod masks;
mod paper;
mod profiled;
mod replay;
