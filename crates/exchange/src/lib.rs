//! Other tools' formats: bytes in, a profile out; a profile in, bytes out.
//!
//! One module per format, each with an `import` or an `export` or both. A format that holds less than a profile
//! says in its header what is lost; a file that is damaged gives what it holds and a list of problems with line
//! numbers.
//!
//! # Design constraints
//! - No files, no clock, no environment: names and bytes are values.
//! - No `unsafe`, no panic on foreign bytes.
//! - Nothing is dropped silently: what cannot be carried over is either documented here or a problem of the run.
#![forbid(unsafe_code)]

pub mod aprof;
pub mod coz;
pub mod csv;
pub mod csv_counts;
pub mod csv_span;
pub mod stacks;
