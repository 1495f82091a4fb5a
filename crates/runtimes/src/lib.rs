//! The code that Farsight puts inside profiled programs, embedded, so that one executable is all there is to
//! install.
//!
//! `build.rs` builds each blob in `blobs/` with a cargo of its own (another profile: panics abort, no standard
//! library) and this crate includes the results.
#![forbid(unsafe_code)]

/// Begins on a page of our own file, so that the launcher can map it from there.
#[repr(C, align(4096))]
struct OnPage<T: ?Sized>(T);

/// The engine with the growth client: a position-independent static executable.
pub static GROWTH: &[u8] = &GROWTH_IMAGE.0;
static GROWTH_IMAGE: &OnPage<[u8]> = &OnPage(*include_bytes!(concat!(env!("OUT_DIR"), "/growth.blob")));

/// The engine with the counting client: a position-independent static executable.
pub static COUNT: &[u8] = &COUNT_IMAGE.0;
static COUNT_IMAGE: &OnPage<[u8]> = &OnPage(*include_bytes!(concat!(env!("OUT_DIR"), "/count.blob")));

/// The causal runtime: a library to preload.
pub static CAUSAL: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/causal.blob"));

/// The idleness runtime: a library to preload.
pub static IDLE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/idle.blob"));

/// Samples inside strands, for the span runtime: a library to preload.
pub static STRAND: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/strand.blob"));

/// The engine with the client that logs every event; for tests.
pub static LOG: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/log.blob"));
