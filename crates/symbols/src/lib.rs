//! Addresses to functions, inlined frames, source lines and loops; and which of them a question is about.
//!
//! ```no_run
//! let object = symbols::fs::open("/usr/bin/ls")?;
//! for frame in &object.resolve(symbols::ObjectAddr(0x4a00)) {
//!     println!("{:?} {:?}:{:?}", frame.function, frame.file, frame.line);
//! }
//! # Ok::<(), symbols::fs::DiskError>(())
//! ```
//! [`Object`] is one ELF file; [`ProcessMap`] says which file was where in a process, and when;
//! [`Symbolizer`] joins the two; [`Scope`] says which frames count.
//!
//! # Design constraints
//! - The core does no I/O: it takes bytes and asks for further files through [`Files`]. [`fs`] is the one
//!   module that reads the disk.
//! - Foreign bytes never make it panic, recurse without bound or allocate out of proportion. What cannot be
//!   read is missing from the answer and named in `problems()`.
//! - Everything is lazy and shared between threads by `&self`.
//! - Answers depend on the files alone, never on the order of questions.
//! - No `unsafe` but one block, in the private module `mapped`, which says why it may map a file.
#![deny(unsafe_code)]

pub mod address;
pub mod bytes;
mod dwarf;
mod elf;
mod frames;
pub mod fs;
mod functions;
mod loops;
mod mapped;
pub mod maps;
mod name;
mod object;
mod plt;
mod problems;
mod process;
mod ranges;
pub mod scope;
mod segments;
mod separate;
pub mod shorten;
mod symbolizer;
mod symtab;
mod unwind;

pub use address::{AddrRange, Epoch, FileOffset, ObjectAddr, ProcessAddr};
pub use bytes::{Bytes, Files, NoFiles};
pub use elf::{BuildId, OpenError};
pub use frames::{Frame, Frames, Location};
pub use functions::Origin;
pub use loops::Loop;
pub use maps::{Backing, Mapping};
pub use name::Name;
pub use object::{Function, Object, Options, Span};
pub use process::{Lived, ProcessMap};
pub use scope::Scope;
pub use segments::{Segment, Segments};
pub use separate::DEBUG_FOLDER;
pub use symbolizer::{Located, Symbolizer};
