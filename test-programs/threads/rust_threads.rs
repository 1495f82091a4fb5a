//! Rust threads, channels, scoped threads, thread locals with destructors, a panic that is caught by join.
//! Answer: below.
//@ stdout: sum 4950, scoped 400, dropped 4, panic caught: boom
//@ repeat: 5
use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

static DROPPED: AtomicUsize = AtomicUsize::new(0);
struct Local(u32);
impl Drop for Local {
    fn drop(&mut self) {
        DROPPED.fetch_add(self.0 as usize, Ordering::SeqCst);
    }
}
thread_local!(static LOCAL: RefCell<Local> = const { RefCell::new(Local(0)) });

fn main() {
    let (tx, rx) = mpsc::channel();
    let handles: Vec<_> = (0..4)
        .map(|i| {
            let tx = tx.clone();
            thread::spawn(move || {
                LOCAL.with(|l| l.borrow_mut().0 = 1);
                for v in (i..100).step_by(4) {
                    tx.send(v).unwrap();
                }
            })
        })
        .collect();
    drop(tx);
    let sum: i32 = rx.iter().sum();
    for h in handles {
        h.join().unwrap();
    }
    let scoped = AtomicUsize::new(0);
    thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| (0..100).for_each(|_| {
                scoped.fetch_add(1, Ordering::Relaxed);
            }));
        }
    });
    std::panic::set_hook(Box::new(|_| {}));
    let caught = thread::spawn(|| panic!("boom")).join().unwrap_err();
    println!(
        "sum {sum}, scoped {}, dropped {}, panic caught: {}",
        scoped.load(Ordering::SeqCst),
        DROPPED.load(Ordering::SeqCst),
        caught.downcast_ref::<&str>().unwrap()
    );
}
