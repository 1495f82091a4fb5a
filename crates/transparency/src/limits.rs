//! What the engine cannot do yet, by the names of the cases that show it; `docs/engine.md` says why. None at present.

/// Cases that differ under the engine. They are skipped by name there, and judged under any other wrapper.
pub const LIMITS: &[&str] = &[];
