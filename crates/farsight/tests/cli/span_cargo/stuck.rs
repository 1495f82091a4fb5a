//! A task that waits for one that a single worker starts only after it; it gives up after a while.

use std::sync::mpsc;
use std::time::Duration;

fn main() {
    let (send, receive) = mpsc::channel();
    rayon_core::scope(|s| {
        // What was spawned last is started first.
        s.spawn(move |_| send.send(()).unwrap_or(()));
        s.spawn(move |_| {
            let received = receive.recv_timeout(Duration::from_secs(12)).is_ok();
            println!("{}", if received { "received" } else { "gave up" });
        });
    });
}
