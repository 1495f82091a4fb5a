//! All interleavings of two threads on race-free programs, with every shadow access relaxed.
//!
//! loom's relaxed atomics are weaker than x86-64, so that what holds here holds there.

#[path = "support/atomic.rs"]
mod atomic;
mod atomics {
    pub use loom::sync::atomic::*;
}

use atomic::AtomicShadow;
use inputsize::core::stack::Stack;
use inputsize::core::thread::{Config, Sink, Thread};
use inputsize::record::Record;
use inputsize::{CellSize, Metric};
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::sync::{Arc, Mutex};

struct Last(Option<Record<1>>);

impl Sink<1> for Last {
    fn finished(&mut self, record: Record<1>) {
        self.0 = Some(record);
    }
    fn before_renumbering(&mut self, _: &Stack<1>) {}
}

fn config(stamp_bits: u32) -> Config {
    Config { metric: Metric::Trms, cell_size: CellSize::FOUR, stamp_bits }
}

/// Size and thread-induced part of a whole thread.
fn finish(thread: Thread<1>, shadow: &AtomicShadow) -> (u64, u64) {
    let mut last = Last(None);
    thread.end(shadow, &mut last);
    let record = last.0.expect("the root ends last");
    (record.size, record.rare.map_or(0, |rare| rare.induced.thread))
}

#[test]
fn a_locked_cell_is_exact() {
    loom::model(|| {
        let shadow = Arc::new(AtomicShadow::new(2, 2));
        // Under the lock: how many writes there were, the real data.
        let lock = Arc::new(Mutex::new(0u32));
        let writer = {
            let (shadow, lock) = (shadow.clone(), lock.clone());
            loom::thread::spawn(move || {
                let mut thread = Thread::<1>::start(config(32), 0, 0);
                for _ in 0..2 {
                    let mut data = lock.lock().unwrap();
                    thread.write(&*shadow, 0, 4);
                    *data += 1;
                }
                // A cell of its own on the same page.
                thread.write(&*shadow, 4, 4);
                thread.read(&*shadow, 4, 4);
                finish(thread, &shadow)
            })
        };
        let mut thread = Thread::<1>::start(config(32), 1, 0);
        let mut seen = Vec::new();
        for _ in 0..2 {
            let data = lock.lock().unwrap();
            thread.read(&*shadow, 0, 4);
            seen.push(*data);
        }
        // Every value that differs from the one before is input; the first one even if nobody wrote it.
        let induced = u64::from(seen[0] != 0) + u64::from(seen[1] != seen[0]);
        let size = 1 + u64::from(seen[1] != seen[0]);
        assert_eq!(finish(thread, &shadow), (size, induced), "{seen:?}");
        assert_eq!(writer.join().unwrap(), (0, 0));
    });
}

#[test]
fn both_write_and_read_under_a_lock() {
    loom::model(|| {
        let shadow = Arc::new(AtomicShadow::new(2, 1));
        let lock = Arc::new(Mutex::new(0u32));
        let run = |slot: usize, shadow: Arc<AtomicShadow>, lock: Arc<Mutex<u32>>| {
            let mut thread = Thread::<1>::start(config(32), slot, 0);
            {
                let mut writer = lock.lock().unwrap();
                thread.write(&*shadow, 0, 4);
                *writer = slot as u32;
            }
            let induced = {
                let writer = lock.lock().unwrap();
                thread.read(&*shadow, 0, 4);
                u64::from(*writer != slot as u32)
            };
            assert_eq!(finish(thread, &shadow), (induced, induced));
        };
        let other = {
            let (shadow, lock) = (shadow.clone(), lock.clone());
            loom::thread::spawn(move || run(0, shadow, lock))
        };
        run(1, shadow, lock);
        other.join().unwrap();
    });
}

#[test]
fn a_flag_publishes_data_and_renumbering_keeps_invalidations() {
    loom::model(|| {
        let shadow = Arc::new(AtomicShadow::new(2, 1));
        let ready = Arc::new(AtomicU32::new(0));
        // The reader holds a stamp of the cell already.
        let mut thread = Thread::<1>::start(config(2), 1, 0);
        thread.read(&*shadow, 0, 4);
        let writer = {
            let (shadow, ready) = (shadow.clone(), ready.clone());
            loom::thread::spawn(move || {
                let mut thread = Thread::<1>::start(config(32), 0, 0);
                thread.write(&*shadow, 0, 4);
                ready.store(1, Ordering::Release);
            })
        };
        // Two-bit stamps: these calls renumber, while the writer takes the stamp away.
        let mut last = Last(None);
        for _ in 0..3 {
            thread.call(&*shadow, &mut last, 1, 8, false);
            thread.ret(&mut last);
        }
        let published = ready.load(Ordering::Acquire) == 1;
        if published {
            thread.read(&*shadow, 0, 4);
            assert_eq!(finish(thread, &shadow), (2, 1));
        }
        writer.join().unwrap();
    });
}
