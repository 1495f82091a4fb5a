//! What a program may do with rayon-core, profiled or not: a test of the project that `span_cargo.rs` builds.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;

use rayon_core::{ThreadPoolBuilder, in_place_scope, join, scope, spawn};

fn pool(threads: usize) -> rayon_core::ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

#[test]
fn a_panic_goes_through_joins_and_what_follows_is_measured() {
    let caught = catch_unwind(|| join(|| join(|| 1, || panic!("deep")), || 2));
    assert!(caught.is_err());
    assert_eq!(join(|| 1, || 2), (1, 2));
}

#[test]
fn a_panic_in_a_scope_waits_for_the_others() {
    let done = AtomicU64::new(0);
    let caught = catch_unwind(AssertUnwindSafe(|| {
        scope(|s| {
            s.spawn(|_| panic!("one"));
            for _ in 0..10 {
                s.spawn(|_| {
                    done.fetch_add(1, Ordering::Relaxed);
                });
            }
        });
    }));
    assert!(caught.is_err());
    assert_eq!(done.load(Ordering::Relaxed), 10);
}

#[test]
fn the_body_of_an_in_place_scope_waits_for_its_tasks_by_a_channel() {
    let (send, receive) = mpsc::channel();
    let sum: u64 = pool(2).in_place_scope(|s| {
        for i in 0..100 {
            let send = send.clone();
            s.spawn(move |_| send.send(i).unwrap());
        }
        drop(send);
        receive.iter().sum()
    });
    assert_eq!(sum, 4950);
    assert_eq!(in_place_scope(|_| 7), 7);
}

#[test]
fn pools_may_be_nested() {
    let (outer, inner) = (pool(2), pool(2));
    let sum = outer.install(|| {
        let (a, b) = join(|| inner.install(|| join(|| 1, || 2)), || inner.install(|| outer.install(|| join(|| 3, || 4))));
        a.0 + a.1 + b.0 + b.1
    });
    assert_eq!(sum, 10);
}

#[test]
fn every_thread_of_a_pool_takes_part_in_a_broadcast() {
    let seen = pool(3).broadcast(|context| context.index());
    assert_eq!(seen, [0, 1, 2]);
}

#[test]
fn what_nobody_waits_for_still_runs() {
    let (send, receive) = mpsc::channel();
    spawn(move || send.send(5).unwrap());
    assert_eq!(receive.recv(), Ok(5));
}
