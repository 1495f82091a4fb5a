//! Ranges against their cells one by one: two processes see the same calls, returns and accesses of four threads, the
//! second one cell by cell; frames and shadow must stay equal. Memory is never touched, so addresses are what is hard:
//! ranges lie across a border of a window of the shadow, and across its pages. A seed always gives the same accesses.

use engine::sys::{self, mm, nr};
use growth_rt::activation::Local;
use growth_rt::layout::{Facts, Frame, facts_of, flag};
use growth_rt::process::Process;
use inputsize::Cell;
use inputsize::core::coherence;
use inputsize::core::shadow::{PAGE_CELLS, Shadow, Slot};
use wire::boot::Boot;
use wire::growth::{FIXED_BYTES, Header, Metric};

/// The last two share a bit of a set of sharers, and the last has no mark of its own.
const SLOTS: [Slot; 4] = [0, 1, 70, 254];
/// Places that ranges lie around, one after the other: the first accesses of memory are what differs most.
const PLACES: u64 = 30;
const STEPS: u64 = 40;
/// Cells before and behind a border that ranges touch.
const AROUND: u64 = 160;

struct Side {
    process: &'static Process,
    threads: Vec<Local>,
    shared: u64,
}

impl Side {
    fn new(metric: Metric, shift: u32) -> Side {
        const SHARED_ANONYMOUS_NORESERVE: u64 = 1 | 0x20 | 0x4000;
        let a = [0, FIXED_BYTES, mm::RW, SHARED_ANONYMOUS_NORESERVE, u64::MAX, 0];
        // SAFETY: new memory.
        let shared = unsafe { sys::call(nr::MMAP, a) };
        assert!(!sys::failed(shared));
        let shared = shared as u64;
        // SAFETY: the mapping that was just made, all zeros, which are a header; it has the layout of `wire::growth`.
        let process = unsafe {
            let header = &mut *(shared as *mut Header);
            (header.metric, header.cell_shift, header.stamp_bits) = (metric as u32, shift, 32);
            Process::new(&Boot { shared_base: shared, ..Boot::default() })
        };
        let process: &'static Process = Box::leak(Box::new(process.expect("room for slabs")));
        let start = |&slot: &Slot| {
            let slab = process.slabs + slot as u64 * process.layout.stride;
            Local::start(process, slab, 0, 0, true).expect("memory of a thread")
        };
        Side { process, threads: SLOTS.iter().map(start).collect(), shared }
    }

    fn end(self) {
        drop(self.threads);
        for (at, bytes) in [(self.process.slabs, self.process.layout.bytes()), (self.shared, FIXED_BYTES)] {
            // SAFETY: its threads are gone, and nothing else uses them.
            unsafe { sys::call(nr::MUNMAP, [at, bytes, 0, 0, 0, 0]) };
        }
    }

    /// The pending activations of a thread, root last, then the sentinel.
    fn frames(&self, thread: usize) -> Vec<(Frame, Option<Facts>)> {
        let mut at = self.threads[thread].hot().ssp as *mut Frame;
        let mut out = Vec::new();
        loop {
            // SAFETY: from the top down to the sentinel, which is all that lies below the root.
            unsafe {
                out.push((*at, ((*at).flags & flag::FACTS != 0).then(|| *facts_of(at))));
                if out.len() > 1 && out[out.len() - 2].0.sp == u64::MAX {
                    return out;
                }
                at = at.sub(1);
            }
        }
    }
}

/// The second side's accesses: what one cell after the other is by the definition of stamps and marks.
mod one_by_one {
    use super::*;

    pub fn read(local: &mut Local, slot: Slot, cell: Cell) {
        let stamp = local.process.map.stamp(slot, cell);
        let top = local.hot().ssp as *mut Frame;
        // SAFETY: the top is the root or above it, and the sentinel lies below the root.
        let (top, caller) = unsafe { (&mut *top, &mut *top.sub(1)) };
        if stamp >= top.top as u32 {
            return;
        }
        top.own += 1;
        local.process.map.set_stamp(slot, cell, top.top as u32);
        if stamp == 0 {
            local.far_first(cell);
        } else if stamp < caller.stamp as u32 {
            caller.far += 1;
            let mut at: *mut Frame = caller;
            // SAFETY: the root's stamp is the oldest there is, so the search ends there at the latest.
            unsafe {
                while (*at).stamp as u32 > stamp {
                    at = at.sub(1);
                }
                (*at).far -= 1;
            }
        }
    }

    pub fn write(local: &mut Local, slot: Slot, cell: Cell) {
        local.before_write(cell);
        // SAFETY: the top frame.
        let now = unsafe { (*(local.hot().ssp as *const Frame)).top as u32 };
        local.process.map.set_stamp(slot, cell, now);
    }

    pub fn kernel_write(local: &mut Local, cell: Cell) {
        if local.process.metric != Metric::Rms {
            coherence::kernel_write(&local.process.map, cell, local.process.inputsize_metric());
        }
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }
}

struct Pair {
    ranges: Side,
    cells: Side,
    shift: u32,
    /// A border of a window.
    window: u64,
    /// What ranges lie around now, and which threads access it, a bit each.
    border: u64,
    who: u64,
    random: Random,
    depth: [u64; SLOTS.len()],
}

impl Pair {
    fn new(metric: Metric, shift: u32) -> Pair {
        let (ranges, cells) = (Side::new(metric, shift), Side::new(metric, shift));
        let window = 1u64 << (shift + (ranges.process.map.mask() >> shift).trailing_ones());
        let border = 0x5555_5555_5000 / window * window;
        let before = ranges.process.map.cell(border - 1).0;
        assert_ne!(before + 1, ranges.process.map.cell(border).0, "no border");
        let random = Random(1 + u64::from(shift) + ((metric as u64) << 8));
        Pair { ranges, cells, shift, window: border, border, who: 0, random, depth: [0; SLOTS.len()] }
    }

    /// Goes on to another place: a border of a page, which is one of the window in the beginning.
    fn go_to(&mut self, place: u64) {
        self.border = self.window + ((3 * place * PAGE_CELLS) << self.shift);
        self.who = 1 + place % 15;
    }

    /// A range around the border: mostly short, of any alignment.
    fn range(&mut self) -> (u64, u64) {
        let around = AROUND << self.shift;
        let limit = [3 << self.shift, 20 << self.shift, around][self.random.below(3) as usize];
        let at = self.border - around + self.random.below(around);
        (at, self.random.below(limit + 1))
    }

    fn both(&mut self, act: impl Fn(&mut Side)) {
        act(&mut self.ranges);
        act(&mut self.cells);
    }

    fn step(&mut self) {
        let thread = self.random.below(SLOTS.len() as u64) as usize;
        if self.who >> thread & 1 == 0 {
            return;
        }
        let slot = SLOTS[thread];
        match self.random.below(16) {
            0..3 => {
                self.depth[thread] += 1;
                let sp = (1 << 40) - 16 * self.depth[thread];
                self.both(|side| side.threads[thread].enter(7, sp));
            }
            3 | 4 if self.depth[thread] > 0 => {
                let sp = (1 << 40) - 16 * self.depth[thread];
                self.depth[thread] -= 1;
                self.both(|side| side.threads[thread].ret(sp));
            }
            what => {
                let (address, bytes) = self.range();
                let local = &mut self.ranges.threads[thread];
                match what {
                    0..11 => local.read(address, bytes),
                    11..14 => local.write(address, bytes),
                    _ => local.kernel_write(address, bytes),
                }
                let local = &mut self.cells.threads[thread];
                let start = if bytes == 0 { address } else { address >> self.shift << self.shift };
                for at in (start..address + bytes).step_by(1 << self.shift) {
                    let cell = local.process.map.cell(at);
                    match what {
                        0..11 => one_by_one::read(local, slot, cell),
                        11..14 => one_by_one::write(local, slot, cell),
                        _ => one_by_one::kernel_write(local, cell),
                    }
                }
            }
        }
    }

    fn compare(&self, step: u64) {
        for thread in 0..SLOTS.len() {
            let facts = |side: &Side| {
                let frames = side.frames(thread).into_iter();
                frames.map(|(f, facts)| (f.stamp, f.own, f.far, facts.map(numbers))).collect::<Vec<_>>()
            };
            assert_eq!(facts(&self.ranges), facts(&self.cells), "step {step}, thread {thread}");
        }
        let around = AROUND << self.shift;
        for at in (self.border - around..self.border + around).step_by(1 << self.shift) {
            let shadow = |side: &Side| {
                let (map, cell) = (&side.process.map, side.process.map.cell(at));
                let stamps = SLOTS.map(|slot| (map.stamp(slot, cell), map.lost(slot, cell)));
                (stamps, map.mark(cell), map.sharers(cell.into()))
            };
            assert_eq!(shadow(&self.ranges), shadow(&self.cells), "step {step}, address {at:#x}");
        }
    }
}

fn numbers(facts: Facts) -> ([u64; 2], [u64; 2], i64) {
    (facts.induced, facts.induced_self, facts.rms_less)
}

#[test]
fn ranges_do_what_their_cells_do() {
    for metric in [Metric::Rms, Metric::Trms, Metric::Both] {
        for shift in 0..5 {
            let mut pair = Pair::new(metric, shift);
            for place in 0..PLACES {
                pair.go_to(place);
                for step in 0..STEPS {
                    pair.step();
                    pair.compare(place * STEPS + step);
                }
            }
            pair.ranges.end();
            pair.cells.end();
        }
    }
}
