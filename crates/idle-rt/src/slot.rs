//! A thread's record in shared memory: what the collector needs besides the tree.
//!
//! Written by the owning thread alone, read by the collector at any time: every word is an atomic, and a claim
//! is complete once `claimed` has been stored. A slot outlives its thread and serves the next one.

use crate::effort::Moment;
use crate::logical::Found;
use crate::{ARENA, header};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering::*};
use sampler::ThreadSampler;
use sampler::tree::Tree;
use wire::idle::{METRICS, Slot};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// In a forked child: records are numbered anew.
pub fn forked() {
    COUNT.store(0, Relaxed);
}

/// Where a thread's record is.
#[derive(Debug)]
pub struct SlotRef(AtomicPtr<Slot>);

macro_rules! word {
    ($self:ident.$field:ident as $atomic:ident) => {{
        let at = $self.0.load(Relaxed);
        if at.is_null() {
            return Default::default();
        }
        // SAFETY: a record of the arena, never freed; the field is accessed as an atomic everywhere.
        unsafe { $atomic::from_ptr(&raw mut (*at).$field) }
    }};
}

impl SlotRef {
    /// No record yet.
    pub const fn new() -> Self {
        Self(AtomicPtr::new(core::ptr::null_mut()))
    }

    /// In a forked child: the record is the parent's.
    pub fn forget(&self) {
        self.0.store(core::ptr::null_mut(), Relaxed);
    }

    /// A thread begins; makes the record if there is none. `false` without memory.
    pub fn open(&self, tid: u32) -> bool {
        if self.0.load(Relaxed).is_null() {
            let Some(memory) = ARENA.take_array::<Slot>(1) else { return false };
            // SAFETY: fresh, zeroed memory; the header stays mapped.
            let head = unsafe {
                (*memory.as_ptr()).index = COUNT.fetch_add(1, Relaxed);
                AtomicU64::from_ptr(&raw mut (*header()).slots)
            };
            let mut first = head.load(Acquire);
            loop {
                // SAFETY: nobody else sees the record before the exchange.
                unsafe { (*memory.as_ptr()).next = first };
                match head.compare_exchange_weak(first, ARENA.offset_of(memory), AcqRel, Acquire) {
                    Ok(_) => break,
                    Err(now) => first = now,
                }
            }
            self.0.store(memory.as_ptr(), Relaxed);
        }
        word!(self.tid as AtomicU32).store(tid, Relaxed);
        word!(self.threads as AtomicU64).fetch_add(1, Relaxed);
        word!(self.last_node as AtomicU32).store(0, Relaxed);
        true
    }

    /// Its number.
    pub fn index(&self) -> u32 {
        word!(self.index as AtomicU32).load(Relaxed)
    }

    /// The node of the last sample of this thread.
    pub fn last_node(&self) -> u32 {
        word!(self.last_node as AtomicU32).load(Relaxed)
    }

    /// Effort since the last claim is kept for the next sample; the thread claims no more.
    pub fn rest(&self, moment: Moment) {
        let (effort, ns) = self.since(moment);
        let (pending, pending_ns) = (word!(self.pending as AtomicU64), word!(self.pending_ns as AtomicU64));
        pending.store(effort.wrapping_add(pending.load(Relaxed)), Relaxed);
        pending_ns.store(ns.wrapping_add(pending_ns.load(Relaxed)), Relaxed);
        word!(self.state as AtomicU32).store(2, Relaxed);
    }

    /// The thread claims from here on.
    pub fn work(&self, moment: Moment) {
        self.since(moment);
        word!(self.state as AtomicU32).store(1, Release);
    }

    /// Effort and time since the last claim; the next one begins here.
    fn since(&self, moment: Moment) -> (u64, u64) {
        let effort = moment.sum.wrapping_sub(word!(self.claimed as AtomicU64).swap(moment.sum, Relaxed));
        let ns = moment.ns.saturating_sub(word!(self.claimed_ns as AtomicU64).swap(moment.ns, Relaxed));
        (effort, ns)
    }

    /// Claims the effort since the last claim and what was kept, for `cpu_ns` of CPU time: the mean of cores per
    /// working thread, as effort per ns of work.
    pub fn claim(&self, moment: Moment, cpu_ns: u64) -> u64 {
        let (effort, ns) = self.since(moment);
        self.split(effort, ns, cpu_ns)
    }

    /// The part of an effort that goes with `cpu_ns` of CPU time; the rest was lost to others.
    fn split(&self, effort: u64, ns: u64, cpu_ns: u64) -> u64 {
        let effort = effort.wrapping_add(word!(self.pending as AtomicU64).swap(0, Relaxed));
        let ns = ns.wrapping_add(word!(self.pending_ns as AtomicU64).swap(0, Relaxed));
        let used = wire::idle::used(effort, ns, cpu_ns);
        word!(self.preempted as AtomicU64).fetch_add(effort.wrapping_sub(used), Relaxed);
        used
    }

    /// The present wait began then; 0 when it is over.
    pub fn waiting(&self, since_ns: u64) {
        word!(self.waiting_since as AtomicU64).store(since_ns, Relaxed);
    }

    /// A sample.
    pub fn sampled(&self, node: u32, cpu_ns: u64, found: &Found) {
        word!(self.last_node as AtomicU32).store(node, Relaxed);
        word!(self.cpu_ns as AtomicU64).fetch_add(cpu_ns, Relaxed);
        word!(self.samples as AtomicU64).fetch_add(1, Relaxed);
        if !found.whole {
            word!(self.cut as AtomicU64).fetch_add(1, Relaxed);
        }
        match found.task {
            Some(true) => drop(word!(self.stitched as AtomicU64).fetch_add(1, Relaxed)),
            Some(false) => drop(word!(self.orphans as AtomicU64).fetch_add(1, Relaxed)),
            None => {}
        }
    }

    /// What samples the thread.
    pub fn backend(&self, backend: u32) {
        word!(self.backend as AtomicU32).store(backend, Relaxed);
    }

    /// The thread ends: its CPU time so far (all threads of this slot) and the effort for it, not yet charged.
    pub fn close(&self, cpu_ns: u64) -> (u64, u64) {
        let known = word!(self.cpu_ns as AtomicU64);
        let left = cpu_ns.saturating_sub(known.load(Relaxed));
        known.fetch_add(left, Relaxed);
        word!(self.state as AtomicU32).store(0, Relaxed);
        (left, self.split(0, 0, left))
    }

    /// Copies the sampler's own counts.
    pub fn count(&self, sampler: &ThreadSampler) {
        word!(self.skipped as AtomicU64).store(sampler.skipped(), Relaxed);
    }

    /// Says where the tree's nodes are.
    pub fn describe(&self, tree: &Tree<METRICS>) {
        let at = self.0.load(Relaxed);
        if at.is_null() {
            return;
        }
        for (i, (chunk, _)) in tree.chunks().enumerate() {
            // SAFETY: a record of the arena; index within bounds by `get_mut`'s check on a raw array.
            unsafe {
                let chunks = &raw mut (*at).chunks;
                if i < wire::idle::CHUNKS {
                    AtomicU64::from_ptr(chunks.cast::<u64>().add(i)).store(chunk.as_ptr() as u64, Relaxed);
                }
            }
        }
        word!(self.refused as AtomicU64).store(tree.refused(), Relaxed);
        word!(self.nodes as AtomicU32).store(tree.len(), Release);
    }
}

impl Default for SlotRef {
    fn default() -> Self {
        Self::new()
    }
}
