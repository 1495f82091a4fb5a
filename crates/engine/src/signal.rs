//! Signals.

use crate::client::Client;
use crate::engine::Engine;
use crate::state::ThreadState;

/// A thread's signal state.
#[repr(C)]
pub struct ThreadSignals {
    x: u64,
}

/// The program's handlers.
#[derive(Default)]
pub struct Actions {}

impl<C: Client> Engine<C> {
    pub(crate) fn start_signals(&mut self, _st: &mut ThreadState) {}
    pub(crate) fn raise_fetch_fault(&mut self, st: &mut ThreadState, pc: u64) {
        crate::bug::report(b"jump to nowhere", pc, st.resume)
    }
}
