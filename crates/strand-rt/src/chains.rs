//! The chains of calls that a thread's samples were inside of, each kept once.
//!
//! A table of pointers, open addressing; chains come from an arena and are never freed. Used in the thread's handler
//! alone.

use core::alloc::Layout;
use core::cell::Cell;
use core::mem::offset_of;
use preload::arena::Arena;
use wire::strand::{Call, Chain};

const SLOTS: usize = 4096;
/// Places that are looked at before a chain is refused.
const STEPS_MAX: usize = 64;

/// Chains of one thread.
#[derive(Debug)]
pub struct Chains {
    slots: [Cell<*const Chain>; SLOTS],
}

impl Chains {
    pub const fn new() -> Self {
        Self { slots: [const { Cell::new(core::ptr::null()) }; SLOTS] }
    }

    /// The chain of these calls; `None` if there is no room for it.
    pub fn get(&self, calls: &[Call], arena: &Arena) -> Option<*const Chain> {
        let hash = calls.iter().fold(calls.len() as u64, |hash, call| {
            (hash ^ call.site ^ call.function << 48).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23)
        });
        for step in 0..STEPS_MAX {
            let slot = self.slots.get((hash as usize).wrapping_add(step) % SLOTS)?;
            let chain = slot.get();
            if chain.is_null() {
                let made = keep(hash, calls, arena)?;
                slot.set(made);
                return Some(made);
            }
            // SAFETY: chains are never freed or changed.
            if unsafe { (*chain).hash == hash && calls_of(chain) == calls } {
                return Some(chain);
            }
        }
        None
    }
}

/// # Safety
/// The chain was made here: it has room for as many calls as it says.
unsafe fn calls_of<'a>(chain: *const Chain) -> &'a [Call] {
    // SAFETY: by contract.
    unsafe { core::slice::from_raw_parts((&raw const (*chain).calls).cast::<Call>(), (*chain).len as usize) }
}

fn keep(hash: u64, calls: &[Call], arena: &Arena) -> Option<*const Chain> {
    let bytes = offset_of!(Chain, calls) + size_of_val(calls);
    let chain =
        arena.take(Layout::from_size_align(bytes, align_of::<Chain>()).ok()?)?.as_ptr().cast::<Chain>();
    // SAFETY: fresh memory, large enough for the two words and these calls, and aligned.
    unsafe {
        (&raw mut (*chain).hash).write(hash);
        (&raw mut (*chain).len).write(calls.len() as u64);
        let place = (&raw mut (*chain).calls).cast::<Call>();
        place.copy_from_nonoverlapping(calls.as_ptr(), calls.len());
    }
    Some(chain)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn equal_calls_are_one_chain_and_others_are_not() {
        let arena = std::boxed::Box::leak(std::boxed::Box::new(Arena::new()));
        arena.reserve(1 << 20).unwrap();
        let chains = std::boxed::Box::new(Chains::new());
        let call = |function, site| Call { function, site };
        let paths = [
            std::vec![],
            std::vec![call(1, 16)],
            std::vec![call(1, 17)],
            std::vec![call(2, 16)],
            std::vec![call(1, 16), call(1, 16)],
            std::vec![call(1, 16), call(2, 20)],
        ];
        let first: std::vec::Vec<_> = paths.iter().map(|p| chains.get(p, arena).unwrap()).collect();
        for (path, &chain) in paths.iter().zip(&first) {
            assert_eq!(chains.get(path, arena), Some(chain));
            // SAFETY: made by `get`.
            assert_eq!(unsafe { calls_of(chain) }, path.as_slice());
        }
        let distinct: std::collections::BTreeSet<_> = first.iter().collect();
        assert_eq!(distinct.len(), paths.len());
    }

    #[test]
    fn a_full_table_refuses() {
        let arena = std::boxed::Box::leak(std::boxed::Box::new(Arena::new()));
        arena.reserve(8 << 20).unwrap();
        let chains = std::boxed::Box::new(Chains::new());
        let kept =
            (0..2 * SLOTS as u64).filter(|&n| chains.get(&[Call { function: n, site: n }], arena).is_some());
        let kept = kept.count();
        assert!((SLOTS / 2..=SLOTS).contains(&kept), "{kept}");
    }
}
