//! Traces run through the algorithm: for tests, and for recorded runs.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::coherence;
use super::shadow::{MapShadow, Slot};
use super::stack::Stack;
use super::thread::{Config, Sink, Thread};
use crate::ingest::Nesting;
use crate::record::Record;
use crate::trace::{Event, Step};
use crate::{Activation, Metric};

/// Replays traces by the algorithm.
#[derive(Debug)]
pub struct Replay<const N: usize> {
    config: Config,
    /// Entries after which a thread's buffer is used up.
    batch: usize,
    shadow: MapShadow,
    threads: BTreeMap<u32, (Slot, Thread<N>, Batch<N>)>,
    free: Vec<Slot>,
    slots: Slot,
    finished: Vec<(u32, Activation<N>)>,
}

impl<const N: usize> Replay<N> {
    /// An empty world.
    pub fn new(config: Config, batch: usize) -> Replay<N> {
        Replay {
            config,
            batch,
            shadow: MapShadow::default(),
            threads: BTreeMap::new(),
            free: Vec::new(),
            slots: 0,
            finished: Vec::new(),
        }
    }

    /// The activations that finished, with their threads, for a whole trace; those of one thread in order.
    pub fn run(config: Config, batch: usize, steps: &[Step]) -> Vec<(u32, Activation<N>)> {
        let mut replay = Replay::new(config, batch);
        for step in steps {
            replay.step(*step);
        }
        let Replay { mut finished, threads, .. } = replay;
        for (id, (_, thread, mut batch)) in threads {
            batch.flush(&thread.stack);
            finished.extend(batch.done.into_iter().map(|done| (id, done)));
        }
        finished
    }

    /// The shadow memory, for a look at what it costs.
    pub fn shadow(&self) -> &MapShadow {
        &self.shadow
    }

    /// Applies one step.
    pub fn step(&mut self, Step { thread: id, event }: Step) {
        let shadow = &self.shadow;
        if let Event::ThreadStart { routine } = event {
            let slot = self.free.pop().unwrap_or(self.slots);
            self.slots = self.slots.max(slot + 1);
            let thread = Thread::start(self.config, slot, routine);
            self.threads.insert(id, (slot, thread, Batch::new(self.config.metric)));
            return;
        }
        if event == Event::ThreadEnd {
            let ended = self.threads.remove(&id);
            let (slot, thread, mut batch) =
                ended.expect("a well-formed trace starts threads before it uses them");
            thread.end(shadow, &mut batch);
            batch.settle(&[]);
            self.finished.extend(batch.done.into_iter().map(|done| (id, done)));
            self.free.push(slot);
            return;
        }
        let (_, thread, sink) =
            self.threads.get_mut(&id).expect("a well-formed trace starts threads before it uses them");
        match event {
            Event::ThreadStart { .. } | Event::ThreadEnd => {}
            Event::Call { routine, sp, folded } => thread.call(shadow, sink, routine, sp, folded),
            Event::Return => thread.ret(sink),
            Event::TailCall { routine, folded } => thread.tail_call(shadow, sink, routine, folded),
            Event::Unwind { sp } => thread.unwind(sink, sp),
            Event::SignalEnter { routine } => thread.enter_handler(shadow, sink, routine),
            Event::SignalExit => thread.leave_handler(sink),
            Event::Read { address, size } | Event::KernelRead { address, size } => {
                thread.read(shadow, address, size)
            }
            Event::Write { address, size } => thread.write(shadow, address, size),
            Event::KernelWrite { address, size } => thread.kernel_write(shadow, address, size),
            Event::Reset { address, size } => coherence::reset(shadow, self.config.cell_size, address, size),
            Event::Cost { which, amount } => thread.stack.cost[usize::from(which)] += amount,
        }
        if sink.entries >= self.batch {
            sink.flush(&thread.stack);
        }
    }
}

/// A record buffer and what was read from it.
#[derive(Debug)]
struct Batch<const N: usize> {
    metric: Metric,
    words: Vec<u64>,
    entries: usize,
    nesting: Nesting,
    done: Vec<Activation<N>>,
}

impl<const N: usize> Batch<N> {
    fn new(metric: Metric) -> Batch<N> {
        Batch { metric, words: Vec::new(), entries: 0, nesting: Nesting::default(), done: Vec::new() }
    }

    fn flush(&mut self, stack: &Stack<N>) {
        let pending: Vec<_> = stack.frames().iter().map(|frame| (frame.stamp, frame.routine)).collect();
        self.settle(&pending);
    }

    fn settle(&mut self, pending: &[(u32, u32)]) {
        self.nesting.begin(pending.len(), |index| pending[index]);
        let mut words = &self.words[..];
        let from = self.done.len();
        while let Some(record) = Record::<N>::read_last(&mut words) {
            let outermost = self.nesting.is_outermost(record.routine, record.stamp);
            let rare = record.rare;
            let rms = match self.metric {
                Metric::Trms => 0,
                Metric::Rms => record.size,
                Metric::Both => rare.map_or(record.size, |rare| rare.rms),
            };
            self.done.push(Activation {
                routine: record.routine,
                rms,
                trms: if self.metric == Metric::Rms { 0 } else { record.size },
                induced: rare.map_or_else(Default::default, |rare| rare.induced),
                induced_self: rare.map_or_else(Default::default, |rare| rare.induced_self),
                cost: record.cost,
                cost_self: record.cost_self,
                outermost,
            });
        }
        self.done[from..].reverse();
        self.words.clear();
        self.entries = 0;
    }
}

impl<const N: usize> Sink<N> for Batch<N> {
    fn finished(&mut self, record: Record<N>) {
        record.write(&mut self.words);
        self.entries += 1;
    }

    fn before_renumbering(&mut self, stack: &Stack<N>) {
        self.flush(stack);
        self.nesting.forget();
    }
}
