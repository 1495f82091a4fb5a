//! The real executable on real files: stdout, stderr and exit code are what scripts depend on.

mod bad_files;
mod causal;
mod check;
mod diff;
mod doctor;
mod exchange;
mod farsight;
mod follow;
mod idle;
mod idle_follow;
mod idle_odd;
mod mode;
mod report;
mod sample;
mod signals;
mod span;
mod span_cargo;
