//! What the engine cannot do yet, by the names of the cases that show it; `docs/engine.md` says why.

/// Cases that differ under the engine. They are skipped by name there, and judged under any other wrapper.
pub const LIMITS: &[&str] = &["code/jit_remap", "signals/single_step"];
