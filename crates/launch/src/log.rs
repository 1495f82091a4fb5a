//! Reading what the logging runtime wrote.

use crate::results::Results;
use crate::run::Spec;
use std::ffi::OsString;
use wire::log::{EVENTS_MAX, EVENTS_OFFSET, Event, FIXED_BYTES, Header, MAGIC};

/// A run of `command` under the logging runtime `blob`.
pub fn spec<'a>(command: &'a [OsString], blob: &'a [u8], flags: u32) -> Spec<'a> {
    Spec { command, blob, flags, fixed_bytes: FIXED_BYTES, prepare: &prepare, duration: None }
}

/// Writes the header that the runtime expects.
fn prepare(r: &Results) {
    r.put(0, Header { magic: MAGIC, version: wire::VERSION, ..Header::default() });
}

/// All events, in order; and how many more there were than fit.
pub fn read(r: &Results) -> (&[Event], u64) {
    let h: Header = r.get(0);
    let n = h.events.min(EVENTS_MAX);
    (r.slice(EVENTS_OFFSET, n as usize), h.events - n)
}
