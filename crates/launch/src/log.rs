//! Reading what the logging runtime wrote.

use crate::results::Results;
use wire::log::{EVENTS_MAX, EVENTS_OFFSET, Event, Header, MAGIC};

/// Writes the header that the runtime expects.
pub fn prepare(r: &Results) {
    r.put(0, Header { magic: MAGIC, version: wire::VERSION, ..Header::default() });
}

/// All events, in order; and how many more there were than fit.
pub fn read(r: &Results) -> (&[Event], u64) {
    let h: Header = r.get(0);
    let n = h.events.min(EVENTS_MAX);
    (r.slice(EVENTS_OFFSET, n as usize), h.events - n)
}
