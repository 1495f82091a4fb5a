//! Returns of clients whose code for them is the same everywhere ([`Client::SHARED_RETURNS`]).
//!
//! ```text
//! ret:  mov s, dword [rsp] ; the program's fault, if there is one, happens here
//!       jmp shared         ; with the block's registers lent
//! shared:                  ; once for each choice of lent registers
//!       ... the client's code ...
//!       ... all registers are the program's again ...
//!       ... the return (callret.rs) ...
//! ```
//! A return has nothing behind it that depends on its place, so nothing has to come back. What would be two hundred bytes
//! at each return is there a few dozen times, and the processor's caches always hold it.

use crate::addrmap::Point;
use crate::client::Client;
use crate::edges::{Edge, Site, mask_of};
use crate::emit::reg;
use crate::engine::Engine;
use crate::entrance::{DEFAULT_LENT, scratch_of};
use crate::instrument::{spill, unspill};
use crate::modrm::{Mem, Size};
use crate::superblock::{End, Insn};
use crate::translate::Streams;
use alloc::collections::BTreeMap;

/// Where that code is, by arena and lent registers.
pub(crate) type SharedReturns = BTreeMap<(usize, u16), u64>;

impl<C: Client> Engine<C> {
    /// Does the decoded superblock end with a return that goes through shared code?
    pub(crate) fn shares_return(&self) -> bool {
        C::SHARED_RETURNS
            && self.plan.edge == Some(Edge::Return)
            && self.sb.end == End::Return { pop: 0 }
            && self.returns_kill_flags()
    }

    /// Registers that are lent where returns arrive, as bits: those that most blocks lend. They stay lent from the client's
    /// code for the return to the block behind the call, and r11 is among them, so that neither end of a return has to
    /// go through memory for it. The same for a whole run, whatever is looked at: a return may arrive at any landing, or
    /// where indirect branches arrive; so they are lent there, too.
    pub(crate) fn lent_at_returns(&self) -> u16 {
        if C::SHARED_RETURNS { mask_of(&DEFAULT_LENT) } else { 0 }
    }

    /// Such a return.
    pub(crate) fn emit_shared_return(&mut self, s: &mut Streams, entry: u64, insn: &Insn) {
        let shared = self.shared_return(s);
        self.maps.add(s.hot.here() - entry, insn.ins.len(), Point::Copy, 0);
        s.hot.load(Size::D, self.plan.scratch[0], &Mem::base(reg::RSP, 0));
        s.hot.jmp(shared);
    }

    fn shared_return(&mut self, s: &mut Streams) -> u64 {
        let lent = self.plan.borrowed;
        if let Some(&at) = self.shared_returns.get(&(s.arena, lent)) {
            return at;
        }
        s.cold.align(64);
        let at = s.cold.here();
        self.emit_edge_in_cold(
            &mut s.cold,
            Edge::Return,
            (lent, scratch_of(lent)),
            Site::Shared,
            |e, cold| {
                let goal = e.lent_at_returns();
                unspill(cold, lent & !goal);
                spill(cold, goal & !lent);
                e.emit_return_jump(cold);
            },
        );
        self.shared_returns.insert((s.arena, lent), at);
        at
    }
}
