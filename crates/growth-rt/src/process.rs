//! What all threads of the program share: the shadow, the tables, what was asked for. Fixed after the start.

use crate::layout::Slabs;
use crate::shadow::Map;
use crate::shared::Shared;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use engine::lock::SpinLock;
use engine::sys::{self, mm, nr};
use inputsize::core::shadow::Slot;
use wire::boot::Boot;
use wire::growth::{Cost, HOT_OFFSET, Metric, Routine, WINDOW_BYTES, routine};

/// Addresses tried for the slabs, 40 TB of them: between the engine and where kernels put programs, or below both
/// (where a kernel puts libraries if the stack is unlimited).
const BASES: [u64; 2] = [0x2c00_0000_0000, 0x0100_0000_0000];

/// The process.
pub struct Process {
    /// The shared memory.
    pub shared: Shared,
    /// The shadow memory.
    pub map: Map,
    /// What sizes count.
    pub metric: Metric,
    /// What costs count.
    pub cost: Cost,
    /// Bits of `wire::growth::fold`.
    pub fold: u32,
    /// Bits of a stamp.
    pub stamp_bits: u32,
    /// Address of slab 0.
    pub slabs: u64,
    /// How slabs follow each other.
    pub layout: Slabs,
    /// Ranges that were unmapped and whose routines are not forgotten yet.
    unmapped: SpinLock<Vec<(u64, u64)>>,
    /// Whether there are any: looked at without the lock.
    any_unmapped: AtomicBool,
    /// The end of the heap.
    heap_end: AtomicU64,
    /// Numbers of handlers.
    handlers: SpinLock<BTreeMap<u64, u32>>,
}

impl Process {
    /// Reserves what a run needs; `None` when the address space has no room.
    ///
    /// # Safety
    /// The boot block is the launcher's, and its shared mapping has the layout of `wire::growth`.
    pub unsafe fn new(boot: &Boot) -> Option<Process> {
        // SAFETY: passed on.
        let shared = unsafe { Shared::new(boot.shared_base) };
        let header = shared.header();
        let metric = match header.metric {
            0 => Metric::Rms,
            1 => Metric::Trms,
            _ => Metric::Both,
        };
        let layout = Slabs::new(metric == Metric::Both);
        let slabs = BASES.iter().find_map(|&base| {
            let flags = mm::MAP_FIXED_NOREPLACE | mm::MAP_NORESERVE;
            sys::map_anonymous(base, layout.bytes(), mm::RW, flags).filter(|&at| at == base)
        })?;
        sys::no_dump(slabs, layout.bytes());
        const RSP: usize = 4;
        let apart = (boot.regs.gpr[RSP], boot.regs.rip);
        Some(Process {
            shared,
            map: Map::new(slabs, layout, header.cell_shift, apart)?,
            metric,
            cost: match header.cost {
                0 => Cost::Blocks,
                1 => Cost::Instructions,
                2 => Cost::Memory,
                _ => Cost::Time,
            },
            fold: header.fold,
            stamp_bits: header.stamp_bits,
            slabs,
            layout,
            unmapped: SpinLock::new(Vec::new()),
            any_unmapped: AtomicBool::new(false),
            heap_end: AtomicU64::new(0),
            handlers: SpinLock::new(BTreeMap::new()),
        })
    }

    /// Memory lost its contents and its past.
    pub fn unmapped(&self, start: u64, len: u64) {
        self.map.reset(start, len);
        self.unmapped.lock().push((start, start.saturating_add(len)));
        self.any_unmapped.store(true, Ordering::Release);
    }

    /// The ranges that were unmapped since the last time.
    pub fn take_unmapped(&self) -> Vec<(u64, u64)> {
        if !self.any_unmapped.load(Ordering::Acquire) {
            return Vec::new();
        }
        let mut list = self.unmapped.lock();
        self.any_unmapped.store(false, Ordering::Relaxed);
        core::mem::take(&mut *list)
    }

    /// Notes the end of the heap; returns the one before.
    pub fn swap_break(&self, end: u64) -> u64 {
        self.heap_end.swap(end, Ordering::Relaxed)
    }

    /// The routine of a signal handler. Handlers are called by the kernel: what is at their address later does not
    /// matter.
    pub fn handler(&self, address: u64) -> u32 {
        let mut known = self.handlers.lock();
        *known.entry(address).or_insert_with(|| {
            self.shared.add_routine(Routine { address, module: 0, flags: routine::HANDLER })
        })
    }

    /// Which slab this is.
    pub fn slot_of(&self, slab: u64) -> Slot {
        ((slab - self.slabs) / self.layout.stride) as Slot
    }

    /// Maps a slot's window where gs reaches it.
    pub fn map_window(&self, slot: Slot, slab: u64) -> bool {
        const MAYMOVE_FIXED: u64 = 3;
        let from = self.shared.window(slot as u64);
        // An old length of 0 maps shared memory a second time.
        // SAFETY: replaces memory of this slab, which its thread does not use yet.
        let at =
            unsafe { sys::call(nr::MREMAP, [from, 0, WINDOW_BYTES, MAYMOVE_FIXED, slab + HOT_OFFSET, 0]) };
        !sys::failed(at)
    }

    /// The metric in the words of `inputsize`.
    pub fn inputsize_metric(&self) -> inputsize::Metric {
        match self.metric {
            Metric::Rms => inputsize::Metric::Rms,
            Metric::Trms => inputsize::Metric::Trms,
            Metric::Both => inputsize::Metric::Both,
        }
    }
}
