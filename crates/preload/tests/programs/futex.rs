//! Rust's standard locks and channels, which never call a pthread function.
use std::sync::{Arc, Barrier, Condvar, Mutex, RwLock, mpsc};
use std::thread;
use std::time::Duration;

fn main() {
    let pair = Arc::new((Mutex::new(0), Condvar::new()));
    let barrier = Arc::new(Barrier::new(3));
    let table = Arc::new(RwLock::new(0));
    let (sender, receiver) = mpsc::channel();
    let threads: Vec<_> = (0..2)
        .map(|i| {
            let (pair, barrier, table, sender) = (pair.clone(), barrier.clone(), table.clone(), sender.clone());
            thread::spawn(move || {
                barrier.wait();
                for _ in 0..100 {
                    let mut count = pair.0.lock().unwrap();
                    while *count % 2 != i {
                        count = pair.1.wait(count).unwrap();
                    }
                    *count += 1;
                    pair.1.notify_all();
                }
                *table.write().unwrap() += i;
                thread::park_timeout(Duration::from_millis(1));
                sender.send(i).unwrap();
            })
        })
        .collect();
    barrier.wait();
    let sum: usize = receiver.iter().take(2).sum();
    for thread in threads {
        thread.join().unwrap();
    }
    println!("{} {} {sum}", pair.0.lock().unwrap(), table.read().unwrap());
}
