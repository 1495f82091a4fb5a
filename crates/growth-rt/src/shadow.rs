//! Stamps, marks and sharers in raw memory: what `inputsize::core` works on.
//!
//! A cell is named by its *index*, the bits of its address that the mask keeps. Every access is a relaxed atomic
//! of its own width, as emitted code makes them. Only memory that [`Map`] reserved is ever touched: an index has
//! [`INDEX_BITS`] bits by construction.

use crate::layout::{FOLDED_MARK, INDEX_BITS, LOST, NEST, STAMPS, Slabs};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering::Relaxed};
use engine::region::Regions;
use engine::sys::{self, mm, nr};
use inputsize::Cell;
use inputsize::core::shadow::{Mark, PAGE_CELLS, Page, Shadow, Sharers, Slot};

/// Cells around index 0 that folded work is led to, before it and from it on: as far as code reaches from an index
/// that it holds ([`crate::code::REACH`]), and the longest access.
pub const FOLDED_CELLS: [u64; 2] = [128, 272];
/// Bytes before and behind the marks, so that code may reach beyond the first and the last cell.
const MARKS_MARGIN: u64 = 4096;

const DONTNEED: u64 = 4;
const CLOEXEC: u64 = 0x80000;

/// The shadow memory of a process.
pub struct Map {
    /// Address of slab 0.
    slabs: u64,
    layout: Slabs,
    /// One byte per cell.
    marks: u64,
    /// One word per page of cells.
    sharers: u64,
    /// Slots that were ever in use.
    used: AtomicU64,
    /// The bits of an address that tell cells apart.
    mask: u64,
    /// log2 of the bytes of a cell.
    shift: u32,
}

impl Map {
    /// Reserves marks and sharers; `None` when there is no address space.
    ///
    /// `apart` are two addresses (stack and libraries) that must not share a cell.
    pub fn new(slabs: u64, layout: Slabs, shift: u32, apart: (u64, u64)) -> Option<Map> {
        let room = (1 << INDEX_BITS) + 2 * MARKS_MARGIN;
        let marks = sys::map_anonymous(0, room, mm::RW, mm::MAP_NORESERVE)? + MARKS_MARGIN;
        let sharers = sys::map_anonymous(0, (8 << INDEX_BITS) / PAGE_CELLS, mm::RW, mm::MAP_NORESERVE)?;
        for at in (marks - FOLDED_CELLS[0]..marks + FOLDED_CELLS[1]).step_by(8) {
            // SAFETY: inside the mapping that was just made, with its margin.
            unsafe { (at as *mut u64).write(FOLDED_MARK) };
        }
        Some(Map { slabs, layout, marks, sharers, used: AtomicU64::new(0), mask: mask(shift, apart), shift })
    }

    /// The bits of an address that tell cells apart.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Where the marks begin.
    pub fn marks(&self) -> u64 {
        self.marks
    }

    /// Where the sets of sharers begin.
    pub fn sharers_base(&self) -> u64 {
        self.sharers
    }

    /// The cell that holds the byte at an address.
    pub fn cell(&self, address: u64) -> Cell {
        Cell(extract(address, self.mask))
    }

    /// The cells that `len` bytes at `address` touch, as pieces of the shadow: (first index, number).
    pub fn touched(&self, address: u64, len: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let first = address >> self.shift;
        let end = if len == 0 { first } else { (address.saturating_add(len - 1) >> self.shift) + 1 };
        self.pieces(first, end)
    }

    /// A thread's stamps of the cells of a piece.
    pub fn stamps(&self, slot: Slot, first: u64, cells: u64) -> &[AtomicU32] {
        let at = self.slab(slot) + STAMPS as u64 + first * 4;
        // SAFETY: a piece lies below 2^INDEX_BITS, so this is inside the slab's stamps, mapped by `take`.
        unsafe { core::slice::from_raw_parts(at as *const AtomicU32, cells as usize) }
    }

    /// The marks of the cells of a piece.
    pub fn marks_of(&self, first: u64, cells: u64) -> &[AtomicU8] {
        // SAFETY: as above: there are as many marks as indices.
        unsafe { core::slice::from_raw_parts((self.marks + first) as *const AtomicU8, cells as usize) }
    }

    /// Prepares the private memory of a slab for a thread; false when there is none.
    pub fn take(&self, slot: Slot) -> bool {
        let slab = self.slab(slot);
        let first = NEST;
        let ok = if (slot as u64) < self.used.load(Relaxed) {
            true
        } else {
            self.used.store(slot as u64 + 1, Relaxed);
            let fixed = mm::MAP_FIXED | mm::MAP_NORESERVE;
            sys::map_anonymous(slab + first, self.layout.stride - first, mm::RW, fixed).is_some()
        };
        if ok {
            const DONTDUMP: u64 = 16;
            // SAFETY: advice about our own mapping.
            unsafe { sys::call(nr::MADVISE, [slab + first, self.layout.stride - first, DONTDUMP, 0, 0, 0]) };
        }
        ok
    }

    /// Forgets whole cells inside a range: memory that went away or came anew.
    pub fn reset(&self, address: u64, len: u64) {
        let cell = 1u64 << self.shift;
        let (start, end) = (address.next_multiple_of(cell), address.saturating_add(len) & !(cell - 1));
        if start >= end {
            return;
        }
        for (first, cells) in self.pieces(start >> self.shift, end >> self.shift) {
            self.reset_piece(first, cells);
        }
    }

    /// The cells with these numbers (address divided by the size of a cell) as pieces of the shadow: (first index,
    /// number). They are contiguous there as long as they stay inside one window of the low bits.
    fn pieces(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (mask, shift) = (self.mask, self.shift);
        let window = 1u64 << (mask >> shift).trailing_ones();
        let mut at = start;
        core::iter::from_fn(move || {
            (at < end).then(|| {
                let stop = end.min((at & !(window - 1)).saturating_add(window));
                let piece = (extract(at << shift, mask), stop - at);
                at = stop;
                piece
            })
        })
    }

    fn reset_piece(&self, first: u64, cells: u64) {
        for slot in 0..self.used.load(Relaxed) {
            let slab = self.slab(slot as Slot);
            zero(slab + STAMPS as u64 + first * 4, cells * 4);
            if self.layout.lost {
                zero(slab + LOST + first * 4, cells * 4);
            }
        }
        zero(self.marks + first, cells);
        let page = first.div_ceil(PAGE_CELLS);
        let pages = ((first + cells) / PAGE_CELLS).saturating_sub(page);
        zero(self.sharers + page * 8, pages * 8);
    }

    fn slab(&self, slot: Slot) -> u64 {
        self.slabs + slot as u64 * self.layout.stride
    }

    fn stamp_at(&self, slot: Slot, cell: Cell) -> &AtomicU32 {
        let at = self.slab(slot) + STAMPS as u64 + cell.0 * 4;
        // SAFETY: an index is below 2^INDEX_BITS, so this is inside the slab's stamps, mapped by `take`.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }
    }

    fn lost_at(&self, slot: Slot, cell: Cell) -> &AtomicU32 {
        let at = self.slab(slot) + LOST + cell.0 * 4;
        // SAFETY: as above, in the map of lost stamps.
        unsafe { AtomicU32::from_ptr(at as *mut u32) }
    }
}

/// Zeroes memory of ours: many whole pages are given back to the kernel, single words are only written if they hold
/// something (a page that nobody touched stays untouched).
fn zero(at: u64, bytes: u64) {
    const MANY: u64 = 4 << 12;
    let end = at + bytes;
    let (first, last) = (at.next_multiple_of(4096), end & !0xfff);
    if last <= first || last - first < MANY {
        clear(at, end);
        return;
    }
    clear(at, first);
    clear(last, end);
    // SAFETY: whole pages of our own private mappings, which become zero.
    unsafe { sys::call(nr::MADVISE, [first, last - first, DONTNEED, 0, 0, 0]) };
}

fn clear(from: u64, to: u64) {
    let (mut at, words_end) = (from.next_multiple_of(8).min(to), to & !7);
    let byte = |at: u64| {
        // SAFETY: the caller's range lies inside the shadow.
        unsafe {
            if (at as *const u8).read() != 0 {
                (at as *mut u8).write(0);
            }
        }
    };
    (from..at).for_each(byte);
    while at < words_end {
        // SAFETY: as above, aligned.
        unsafe {
            if (at as *const u64).read() != 0 {
                (at as *mut u64).write(0);
            }
        }
        at += 8;
    }
    (at..to).for_each(byte);
}

/// Chooses the bits of an address that become a cell's index.
///
/// The low ones as far as they go, bits 45 and 46 (programs at fixed addresses, position-independent ones with
/// their heaps, libraries with stacks), and one bit in which the stack and the libraries differ: where the kernel
/// places things at random, their low bits may coincide.
fn mask(shift: u32, apart: (u64, u64)) -> u64 {
    let fixed = 1u64 << 45 | 1 << 46;
    let low = |bits: u32| ((1u64 << bits) - 1) << shift;
    let top = shift + INDEX_BITS - 3;
    let differ = (apart.0 ^ apart.1) & !fixed & !low(INDEX_BITS - 2) & ((1 << 47) - 1);
    if differ == 0 {
        return fixed | low(INDEX_BITS - 2);
    }
    fixed | low(INDEX_BITS - 3) | 1 << differ.trailing_zeros().max(top)
}

/// The bits of `value` that `mask` keeps, next to each other: `pext`.
fn extract(value: u64, mask: u64) -> u64 {
    #[cfg(target_feature = "bmi2")]
    {
        core::arch::x86_64::_pext_u64(value, mask)
    }
    #[cfg(not(target_feature = "bmi2"))]
    {
        let out: u64;
        // SAFETY: the launcher has checked that the processor has BMI2; the instruction touches registers alone.
        unsafe {
            core::arch::asm!("pext {}, {}, {}", out(reg) out, in(reg) value, in(reg) mask,
                             options(pure, nomem, nostack, preserves_flags));
        }
        out
    }
}

impl Shadow for Map {
    fn slots(&self) -> Slot {
        self.used.load(Relaxed) as Slot
    }

    fn stamp(&self, slot: Slot, cell: Cell) -> u32 {
        self.stamp_at(slot, cell).load(Relaxed)
    }

    fn set_stamp(&self, slot: Slot, cell: Cell, stamp: u32) {
        self.stamp_at(slot, cell).store(stamp, Relaxed);
    }

    fn replace_stamp(&self, slot: Slot, cell: Cell, old: u32, new: u32) {
        let _ = self.stamp_at(slot, cell).compare_exchange(old, new, Relaxed, Relaxed);
    }

    fn lost(&self, slot: Slot, cell: Cell) -> u32 {
        if self.layout.lost { self.lost_at(slot, cell).load(Relaxed) } else { 0 }
    }

    fn set_lost(&self, slot: Slot, cell: Cell, stamp: u32) {
        if self.layout.lost {
            self.lost_at(slot, cell).store(stamp, Relaxed);
        }
    }

    fn mark(&self, cell: Cell) -> Mark {
        // SAFETY: an index is below 2^INDEX_BITS, the number of marks.
        Mark(unsafe { AtomicU8::from_ptr((self.marks + cell.0) as *mut u8) }.load(Relaxed))
    }

    fn set_mark(&self, cell: Cell, mark: Mark) {
        // SAFETY: as above.
        unsafe { AtomicU8::from_ptr((self.marks + cell.0) as *mut u8) }.store(mark.0, Relaxed);
    }

    fn sharers(&self, page: Page) -> Sharers {
        // SAFETY: a page number is below 2^INDEX_BITS / PAGE_CELLS, the number of words.
        Sharers(unsafe { AtomicU64::from_ptr((self.sharers + page.0 * 8) as *mut u64) }.load(Relaxed))
    }

    fn share(&self, page: Page, sharers: Sharers) {
        // SAFETY: as above.
        unsafe { AtomicU64::from_ptr((self.sharers + page.0 * 8) as *mut u64) }
            .fetch_or(sharers.0, core::sync::atomic::Ordering::SeqCst);
    }

    fn each_stamped(&self, slot: Slot, each: &mut dyn FnMut(Cell)) {
        // What is not mapped has no stamps: `reset` took them away. Of our own memory the large mappings are left
        // out: their indices cover everything.
        let mut regions = Regions::default();
        let own = [
            (self.slabs, self.layout.bytes()),
            (self.marks, 1 << INDEX_BITS),
            (self.sharers, (8 << INDEX_BITS) / PAGE_CELLS),
        ];
        regions.read_own(&own.map(|(start, len)| (start, start + len)));
        let cells = |region: &engine::region::Region| (region.start >> self.shift, region.end >> self.shift);
        let pieces = regions.iter().map(cells).flat_map(|(start, end)| self.pieces(start, end)).collect();
        let base = self.slab(slot) + STAMPS as u64;
        for (first, cells) in union(pieces) {
            each_resident(base + first * 4, cells * 4, &mut |at| each(Cell((at - base) / 4)));
        }
    }

    fn release(&self, slot: Slot) {
        let slab = self.slab(slot);
        let first = NEST;
        // SAFETY: the private part of a slab whose thread has ended.
        unsafe { sys::call(nr::MADVISE, [slab + first, self.layout.stride - first, DONTNEED, 0, 0, 0]) };
    }
}

/// Ranges (first, length) in order, each index in one of them only: regions may share indices, and no cell may be
/// visited twice.
fn union(mut ranges: Vec<(u64, u64)>) -> impl Iterator<Item = (u64, u64)> {
    ranges.sort_unstable();
    let mut end = 0;
    ranges.into_iter().filter_map(move |(first, len)| {
        let (start, stop) = (first.max(end), first + len);
        end = end.max(stop);
        (start < stop).then(|| (start, stop - start))
    })
}

/// Calls `each` with every 4-byte word of a range of our memory that lies in a page in use.
fn each_resident(start: u64, bytes: u64, each: &mut dyn FnMut(u64)) {
    const PIECE: usize = 512;
    // SAFETY: a constant path that ends with a nul byte.
    let fd = unsafe { sys::call(nr::OPEN, [c"/proc/self/pagemap".as_ptr() as u64, CLOEXEC, 0, 0, 0, 0]) };
    if sys::failed(fd) {
        (start..start + bytes).step_by(4).for_each(each);
        return;
    }
    let mut words = [0u64; PIECE];
    let (mut page, end) = (start >> 12, (start + bytes).div_ceil(4096));
    while page < end {
        let n = (end - page).min(PIECE as u64);
        // SAFETY: reads at most `n` words into `words`.
        let got =
            unsafe { sys::call(nr::PREAD64, [fd as u64, words.as_mut_ptr() as u64, n * 8, page * 8, 0, 0]) };
        if got <= 0 {
            break;
        }
        for word in &words[..got as usize / 8] {
            const PRESENT_OR_SWAPPED: u64 = 3 << 62;
            if word & PRESENT_OR_SWAPPED != 0 {
                let (from, to) = ((page << 12).max(start), ((page + 1) << 12).min(start + bytes));
                (from..to).step_by(4).for_each(&mut *each);
            }
            page += 1;
        }
    }
    // SAFETY: our own descriptor.
    unsafe { sys::call(nr::CLOSE, [fd as u64, 0, 0, 0, 0, 0]) };
}

#[cfg(test)]
mod tests {
    use super::{extract, mask, union};
    use crate::layout::INDEX_BITS;

    #[test]
    fn ranges_that_share_indices_are_visited_once() {
        let ranges = [(10, 5), (0, 4), (12, 8), (13, 2), (20, 1)];
        let indices: alloc::vec::Vec<u64> =
            union(ranges.to_vec()).flat_map(|(first, len)| first..first + len).collect();
        assert_eq!(indices, (0..4).chain(10..21).collect::<alloc::vec::Vec<u64>>());
    }

    #[test]
    fn masks_have_the_width_of_an_index_and_keep_stack_and_libraries_apart() {
        let stack = 0x7ffc_1234_5000;
        for shift in [0, 2, 4] {
            for libraries in [0x7f01_1234_5000, 0x7ffc_1234_5000 - (64 << 30), 0x7ff4_1234_5000, stack] {
                let mask = mask(shift, (stack, libraries));
                assert_eq!(mask.count_ones(), INDEX_BITS, "{mask:x}");
                assert_eq!(mask.trailing_zeros(), shift);
                if libraries != stack {
                    assert_ne!(extract(stack, mask), extract(libraries, mask), "{libraries:x} {shift}");
                }
            }
        }
    }
}
