//! Generations of the cache: how its memory comes back while threads run.
//!
//! When the cache is full, or large and mostly stale, everything in it is flushed and a new one is begun. The old one,
//! its tables and lists included, stays as it is for the threads that stand in it, and is freed when the last of them
//! has left. Nobody is stopped or woken for that: all links of the old generation are cut and its branch tables lead to
//! the engine alone, so that a running thread comes here at the end of its block, and one that sleeps in a
//! system call keeps its generation, and no other, until it wakes.
//!
//! A thread's state says which generation it is in. It changes under the engine lock, on the way from the engine into
//! the cache, and takes everything with it that holds cache addresses: the return cache is emptied.
//!
//! # Rules
//! - No way leads from one generation to another but through the engine.
//! - Indices of blocks and exits mean something in their own generation only: see [`Engine::as_of`].

use crate::addrmap::AddressMaps;
use crate::block::{Blocks, Exit, ExitKind};
use crate::cache::Cache;
use crate::client::Client;
use crate::engine::Engine;
use crate::lookup::LowTables;
use crate::returns::Owners;
use crate::state::{RETURN_CACHE_BYTES, RETURN_CACHE_OFFSET, ThreadState};
use crate::sys::{self, nr};
use wire::boot::flags;

/// Bytes of code at which the cache counts as full: a translation of everything that the largest programs run.
const BYTES_MAX: u64 = 384 << 20;
/// Bytes of code from which on a cache is given up when most of its blocks are stale: less is not worth translating the
/// others again.
const BYTES_STALE: u64 = 64 << 20;

/// What belongs to one generation.
pub(crate) struct Generation {
    number: u32,
    cache: Cache,
    blocks: Blocks,
    maps: AddressMaps,
    low: LowTables,
    owners: Owners,
}

impl<C: Client> Engine<C> {
    /// Does something with the tables of a generation that a thread is in.
    pub(crate) fn as_of<R>(&mut self, generation: u32, act: impl FnOnce(&mut Self) -> R) -> R {
        if generation == self.generation {
            return act(self);
        }
        let i = self.old.iter().position(|o| o.number == generation);
        let i = i.expect("a generation is kept while a thread is in it");
        self.exchange(i);
        let result = act(self);
        self.exchange(i);
        result
    }

    fn exchange(&mut self, i: usize) {
        let old = &mut self.old[i];
        core::mem::swap(&mut self.cache, &mut old.cache);
        core::mem::swap(&mut self.blocks, &mut old.blocks);
        core::mem::swap(&mut self.maps, &mut old.maps);
        core::mem::swap(&mut self.low, &mut old.low);
        core::mem::swap(&mut self.owners, &mut old.owners);
    }

    /// The exit through which a thread came here.
    pub(crate) fn exit_of(&mut self, st: &ThreadState) -> Exit {
        self.as_of(st.generation, |e| e.blocks.exits[st.exit_id as usize])
    }

    /// Begins a new generation if it is time to.
    pub(crate) fn reclaim_if_full(&mut self) {
        // (A limit for tests.)
        let limit = u64::from(self.boot.flags >> flags::CACHE_SHIFT) << flags::CACHE_UNIT_SHIFT;
        let used = self.cache.used_bytes();
        let full = if limit != 0 {
            used > limit
        } else {
            used > BYTES_MAX || used > BYTES_STALE && self.blocks.dead * 2 > self.blocks.list.len()
        };
        if full {
            self.begin_generation();
        }
    }

    /// Flushes everything and begins an empty cache. False if there is no room for its tables.
    pub(crate) fn begin_generation(&mut self) -> bool {
        let mut cache = Cache::default();
        let pc = self.boot.regs.rip;
        let (Some(low), Some(owners), Some(_)) =
            (self.low.another(&self.regions), Owners::new(), cache.arena_for(pc, &self.regions))
        else {
            return false;
        };
        self.flush_all();
        self.indirect.clear();
        self.cached_sites.clear();
        self.arrivals = Default::default();
        self.shared_returns.clear();
        self.prefix = Default::default();
        self.old.push(Generation {
            number: self.generation,
            cache: core::mem::replace(&mut self.cache, cache),
            blocks: core::mem::take(&mut self.blocks),
            maps: core::mem::take(&mut self.maps),
            low: core::mem::replace(&mut self.low, low),
            owners: core::mem::replace(&mut self.owners, owners),
        });
        self.generation += 1;
        self.client.cache_begun();
        self.emit_return_miss();
        self.emit_return_fill();
        self.hook_syscalls();
        self.free_generations();
        true
    }

    /// Frees the generations that no thread is in.
    fn free_generations(&mut self) {
        let slabs = &self.slabs;
        self.old.retain(|old| {
            slabs.in_use().any(|s| {
                let st = slabs.address(s) as *const ThreadState;
                // SAFETY: slabs in use are mapped, and generations change under the engine lock.
                unsafe { (*st).generation == old.number }
            })
        });
    }

    /// A thread leaves the generation that it was in for the present one; it stands nowhere in the cache.
    pub(crate) fn renew(&mut self, st: &mut ThreadState) {
        if st.generation == self.generation {
            return;
        }
        st.generation = self.generation;
        st.return_miss = self.return_miss;
        st.return_fill = self.return_fill;
        st.signals.wait_site = 0;
        forget_returns(st.this as u64);
        self.free_generations();
    }

    /// A thread comes from a cut exit of an earlier generation: adds what the passage counts. Returns where it goes.
    pub(crate) fn leave_by(&mut self, st: &mut ThreadState, exit: &Exit) -> u64 {
        match exit.kind {
            ExitKind::CallSite => self.uncount_call(st, exit.target),
            ExitKind::Counted => {
                self.count_passage(st, exit.path, true);
            }
            _ => {}
        }
        exit.target
    }
}

/// Empties the return cache of a slab: returns ask again.
pub(crate) fn forget_returns(slab: u64) {
    const DONTNEED: u64 = 4;
    let at = slab + RETURN_CACHE_OFFSET;
    // SAFETY: the return cache of a slab, private memory of ours; all of its words may become zero at any time (a
    // return to 0 is caught).
    unsafe { sys::call(nr::MADVISE, [at, RETURN_CACHE_BYTES, DONTNEED, 0, 0, 0]) };
}
