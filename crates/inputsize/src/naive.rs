//! The definitions as sets: slow and obviously right. The oracle that [`crate::core`] is tested against.
//!
//! Per pending activation `a`, `a.seen` is the set of cells that `a` or a descendant accessed. A read of `l`
//! by thread `t` is
//! - *induced* if the last write of `l` was by another thread or by the kernel, and `t` has not accessed `l`
//!   since: it counts for every pending activation of `t`;
//! - otherwise a *first read* for each pending `a` with `l` not in `a.seen`.
//!
//! # Against the definitions of the papers
//! - *Sizes* are those of definitions 1 to 3, per activation (`tests/definitions.rs` compares with a literal
//!   transcription). Proof: let `L(a)` be the set of the paper's naive method (accessed cells, minus those
//!   that others wrote since). If the read is induced, `l` is in no `L(a)`. If not, then `l` is in `L(a)`
//!   exactly if it is in `a.seen`: the thread's last access of `l` came after the last foreign write, and
//!   every `a` with `l` in `a.seen` was pending then.
//! - *The split* follows the paper's algorithm (its figure 11), not the letter of definition 2. By the letter
//!   a first read by a callee would be induced even when its caller had already taken in the foreign value.
//!   Figure 11 calls a read induced when the value is new to the *thread*; afterwards it is the thread's own.
//! - Definition 2 says "the latest write by another thread, *if any*": where there is none, nothing is
//!   induced.
//! - The kernel's writes are foreign to every thread, the caller included. Its reads are reads by the calling
//!   activation. For the read memory size the kernel's writes do not exist: the paper's buffered read has
//!   rms 1, not 0.
//!
//! # Folded work
//! The accesses of a folded activation and of all that it calls, system calls included, are deleted from the
//! trace; a signal handler is not part of what it interrupts. Calls, returns and costs stay.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::trace::{Event, Step};
use crate::{Activation, Cell, CellSize, Induced, Routine};

/// Replays traces by the definitions.
pub struct Naive<const N: usize> {
    cell_size: CellSize,
    threads: BTreeMap<u32, Thread<N>>,
    writes: BTreeMap<Cell, LastWrite>,
    clock: u64,
    finished: Vec<(u32, Activation<N>)>,
}

struct Thread<const N: usize> {
    pending: Vec<Pending<N>>,
    last_access: BTreeMap<Cell, u64>,
}

struct Pending<const N: usize> {
    routine: Routine,
    sp: u64,
    handler: bool,
    folded: bool,
    seen: BTreeSet<Cell>,
    rms: u64,
    trms: u64,
    induced: Induced,
    induced_self: Induced,
    cost: [u64; N],
    cost_self: [u64; N],
}

struct LastWrite {
    writer: Writer,
    when: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Writer {
    Thread(u32),
    Kernel,
}

impl<const N: usize> Naive<N> {
    /// An empty world.
    pub fn new(cell_size: CellSize) -> Naive<N> {
        Naive { cell_size, threads: BTreeMap::new(), writes: BTreeMap::new(), clock: 0, finished: Vec::new() }
    }

    /// The activations that finished, with their threads, in order, for a whole trace.
    pub fn run(cell_size: CellSize, steps: &[Step]) -> Vec<(u32, Activation<N>)> {
        let mut naive = Naive::new(cell_size);
        for step in steps {
            naive.step(*step);
        }
        naive.finished
    }

    /// Applies one step.
    pub fn step(&mut self, Step { thread: id, event }: Step) {
        self.clock += 1;
        match event {
            Event::ThreadStart { routine } => {
                let root = Pending::new(routine, u64::MAX, false, false);
                self.threads.insert(id, Thread { pending: Vec::from([root]), last_access: BTreeMap::new() });
            }
            Event::ThreadEnd => {
                while self.pop(id) {}
                self.threads.remove(&id);
            }
            Event::Call { routine, sp, folded } => self.push(id, routine, sp, false, folded),
            Event::Return => {
                if self.may_leave(id) {
                    self.pop(id);
                }
            }
            Event::TailCall { routine, folded } => {
                if self.may_leave(id) {
                    let sp = self.threads[&id].pending.last().map_or(0, |top| top.sp);
                    self.pop(id);
                    self.push(id, routine, sp, false, folded);
                }
            }
            Event::Unwind { sp } => {
                while self.may_leave(id) && self.threads[&id].pending.last().is_some_and(|top| top.sp <= sp) {
                    self.pop(id);
                }
            }
            Event::SignalEnter { routine } => self.push(id, routine, 0, true, false),
            Event::SignalExit => {
                if self.threads[&id].pending.iter().any(|a| a.handler) {
                    while !self.threads[&id].pending.last().is_some_and(|top| top.handler) {
                        self.pop(id);
                    }
                    self.pop(id);
                }
            }
            Event::Read { address, size } | Event::KernelRead { address, size } => {
                self.each_cell(id, address, size, Naive::read)
            }
            Event::Write { address, size } => {
                self.each_cell(id, address, size, |naive, id, cell| naive.write(id, cell))
            }
            Event::KernelWrite { address, size } => self.each_cell(id, address, size, |naive, _, cell| {
                naive.writes.insert(cell, LastWrite { writer: Writer::Kernel, when: naive.clock });
            }),
            Event::Reset { address, size } => self.reset(address, size),
            Event::Cost { which, amount } => {
                let pending = &mut self.thread(id).pending;
                for activation in pending.iter_mut() {
                    activation.cost[usize::from(which)] += amount;
                }
                if let Some(top) = pending.last_mut() {
                    top.cost_self[usize::from(which)] += amount;
                }
            }
        }
    }

    fn thread(&mut self, id: u32) -> &mut Thread<N> {
        self.threads.get_mut(&id).expect("a well-formed trace starts threads before it uses them")
    }

    fn push(&mut self, id: u32, routine: Routine, sp: u64, handler: bool, folded: bool) {
        let pending = &mut self.thread(id).pending;
        let inherited = !handler && pending.last().is_some_and(|top| top.folded);
        pending.push(Pending::new(routine, sp, handler, folded || inherited));
    }

    /// Whether the top activation is neither the root nor a signal handler.
    fn may_leave(&self, id: u32) -> bool {
        let pending = &self.threads[&id].pending;
        pending.len() > 1 && pending.last().is_some_and(|top| !top.handler)
    }

    fn pop(&mut self, id: u32) -> bool {
        let pending = &mut self.thread(id).pending;
        let Some(a) = pending.pop() else { return false };
        let outermost = pending.iter().all(|other| other.routine != a.routine);
        let activation = Activation {
            routine: a.routine,
            rms: a.rms,
            trms: a.trms,
            induced: a.induced,
            induced_self: a.induced_self,
            cost: a.cost,
            cost_self: a.cost_self,
            outermost,
        };
        self.finished.push((id, activation));
        true
    }

    fn each_cell(&mut self, id: u32, address: u64, size: u64, access: impl Fn(&mut Naive<N>, u32, Cell)) {
        if self.thread(id).pending.last().is_some_and(|top| top.folded) {
            return;
        }
        for cell in self.cell_size.touched(address, size) {
            access(self, id, cell);
        }
    }

    fn read(&mut self, id: u32, cell: Cell) {
        let last_access = self.thread(id).last_access.get(&cell).copied();
        let induced = self
            .writes
            .get(&cell)
            .filter(|write| {
                write.writer != Writer::Thread(id) && last_access.is_none_or(|at| at < write.when)
            })
            .map(|write| match write.writer {
                Writer::Thread(_) => Induced { thread: 1, external: 0 },
                Writer::Kernel => Induced { thread: 0, external: 1 },
            });
        let thread = self.thread(id);
        for a in &mut thread.pending {
            let first = !a.seen.contains(&cell);
            a.rms += u64::from(first);
            a.trms += u64::from(first || induced.is_some());
            a.induced.add(induced.unwrap_or_default());
        }
        if let Some(top) = thread.pending.last_mut() {
            top.induced_self.add(induced.unwrap_or_default());
        }
        self.accessed(id, cell);
    }

    fn write(&mut self, id: u32, cell: Cell) {
        self.writes.insert(cell, LastWrite { writer: Writer::Thread(id), when: self.clock });
        self.accessed(id, cell);
    }

    fn accessed(&mut self, id: u32, cell: Cell) {
        let now = self.clock;
        let thread = self.thread(id);
        thread.last_access.insert(cell, now);
        for a in &mut thread.pending {
            a.seen.insert(cell);
        }
    }

    fn reset(&mut self, address: u64, size: u64) {
        for cell in self.cell_size.inside(address, size) {
            self.writes.remove(&cell);
            for thread in self.threads.values_mut() {
                thread.last_access.remove(&cell);
                for a in &mut thread.pending {
                    a.seen.remove(&cell);
                }
            }
        }
    }
}

impl<const N: usize> Pending<N> {
    fn new(routine: Routine, sp: u64, handler: bool, folded: bool) -> Pending<N> {
        Pending {
            routine,
            sp,
            handler,
            folded,
            seen: BTreeSet::new(),
            rms: 0,
            trms: 0,
            induced: Induced::default(),
            induced_self: Induced::default(),
            cost: [0; N],
            cost_self: [0; N],
        }
    }
}
