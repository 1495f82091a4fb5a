//! Which target a sample counts for: the innermost frame in scope, counting from the interrupted instruction
//! outwards. Inlined frames are already folded into the experimenter's table.

use core::ops::ControlFlow;
use core::sync::atomic::Ordering::Relaxed;
use sampler::{Sample, Stop};
use wire::causal::{MISSES_MAX, OUT_OF_SCOPE, Shared, UNKNOWN};

/// Frames looked at; deeper callers do not count.
const DEPTH_MAX: usize = 256;

/// What a sample turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// It counts for this target.
    Target(u32),
    /// No frame is in scope.
    OutOfScope,
    /// The walk ended early, without a frame in scope so far.
    Cut,
    /// A frame has no name yet; it has been asked for.
    Unresolved,
}

/// Attributes a sample.
pub fn attribute(shared: &Shared, sample: &mut Sample) -> Found {
    match shared.target_of(sample.regs.pc()) {
        OUT_OF_SCOPE => {}
        UNKNOWN => {
            ask(shared, sample.regs.pc());
            return Found::Unresolved;
        }
        target => return Found::Target(target),
    }
    let mut found = Found::OutOfScope;
    let mut depth = 0;
    let stop = sample.walk(|frame| {
        depth += 1;
        // A return address points behind the call, perhaps into the next line.
        let pc = frame.regs.lookup_pc();
        match shared.target_of(pc) {
            OUT_OF_SCOPE if depth < DEPTH_MAX => ControlFlow::Continue(()),
            OUT_OF_SCOPE => ControlFlow::Break(()),
            UNKNOWN => {
                ask(shared, pc);
                found = Found::Unresolved;
                ControlFlow::Break(())
            }
            target => {
                found = Found::Target(target);
                ControlFlow::Break(())
            }
        }
    });
    match (found, stop) {
        (Found::OutOfScope, Stop::Root) => Found::OutOfScope,
        (Found::OutOfScope, _) => Found::Cut,
        (found, _) => found,
    }
}

fn ask(shared: &Shared, pc: u64) {
    let place = shared.counts.misses.fetch_add(1, Relaxed) as usize % MISSES_MAX;
    if let Some(place) = shared.misses.get(place) {
        place.store(pc, Relaxed);
    }
}
