//! Programs whose work and span are known: they report their costs, so the answer is exact, however many threads
//! run them.
//!
//! The runtime is one per process and tells its result at exit, so each program runs in a process of its own: this
//! test starts itself again with the name of the program.

use span_rayon as rayon_core;

use rayon_core::{farsight_spend as spend, in_place_scope, in_place_scope_fifo, join, scope, spawn};
use spandag::dump::Dump;
use std::alloc::{GlobalAlloc, Layout, System};
use std::process::Command;
use std::sync::atomic::{AtomicI64, Ordering};

const PROGRAM: &str = "SPAN_TEST_PROGRAM";

/// Bytes that are allocated.
static LIVE: AtomicI64 = AtomicI64::new(0);

struct Counting;

// SAFETY: the system's, and a number.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LIVE.fetch_add(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        LIVE.fetch_sub(layout.size() as i64, Ordering::Relaxed);
        // SAFETY: by contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn tree(depth: u32) {
    spend(1);
    if depth > 0 {
        join(|| tree(depth - 1), || tree(depth - 1));
        spend(2);
    } else {
        spend(100);
    }
}

fn skewed(n: u32) {
    spend(3);
    if n > 0 {
        join(|| skewed(n - 1), || spend(50));
    }
}

/// The same numbers for [`random`] and [`silent`].
fn sequence(seed: u64) -> impl FnMut(u64) -> u64 {
    let mut state = seed;
    move |n| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    }
}

fn random(seed: u64, depth: u32) {
    let mut next = sequence(seed);
    for _ in 0..next(5) {
        let (cost, which, a, b) = (next(100), next(6), next(1 << 30), next(1 << 30));
        spend(cost);
        if depth == 0 {
            continue;
        }
        // A scope whose body works between spawns, and one of whose tasks spawns into it in turn.
        let body = |s: &rayon_core::Scope<'_>| {
            for i in 0..3 {
                spend(7);
                s.spawn(move |s| {
                    random(a + i, depth - 1);
                    if i == 1 {
                        s.spawn(move |_| random(b, depth - 1));
                        spend(5);
                    }
                });
            }
        };
        match which {
            0 | 1 => {
                join(|| random(a, depth - 1), || random(b, depth - 1));
            }
            2 => scope(body),
            3 => in_place_scope(body),
            4 => {
                let pool = rayon_core::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
                pool.install(|| random(a, depth - 1));
                rayon_core::yield_now();
            }
            _ => in_place_scope_fifo(|s| s.spawn_fifo(|_| spend(40))),
        }
    }
}

/// Work and span of [`random`].
fn silent(seed: u64, depth: u32) -> (u64, u64) {
    let mut next = sequence(seed);
    let (mut work, mut span) = (0, 0);
    for _ in 0..next(5) {
        let (cost, which, a, b) = (next(100), next(6), next(1 << 30), next(1 << 30));
        work += cost;
        span += cost;
        if depth == 0 {
            continue;
        }
        match which {
            0 | 1 => {
                let ((wa, sa), (wb, sb)) = (silent(a, depth - 1), silent(b, depth - 1));
                work += wa + wb;
                span += sa.max(sb);
            }
            2 | 3 => {
                let t: Vec<_> = (0..3).map(|i| silent(a + i, depth - 1)).collect();
                let inner = silent(b, depth - 1);
                work += 21 + 5 + inner.0 + t.iter().map(|t| t.0).sum::<u64>();
                span += 21.max(7 + t[0].1).max(14 + t[1].1 + inner.1.max(5)).max(21 + t[2].1);
            }
            4 => {
                let (w, sp) = silent(a, depth - 1);
                work += w;
                span += sp;
            }
            _ => {
                work += 40;
                span += 40;
            }
        }
    }
    (work, span)
}

/// Runs a program and prints its work and span.
fn program(name: &str) {
    let (work, span) = match name {
        "tree" => {
            tree(10);
            (1024 * 101 + 1023 * 3, 10 * 3 + 101)
        }
        "skewed" => {
            skewed(300);
            (301 * 3 + 300 * 50, 300 * 3 + 50)
        }
        "chain" => {
            for _ in 0..500 {
                join(|| spend(10), || spend(11));
            }
            (500 * 21, 500 * 11)
        }
        "scope" => {
            scope(|s| {
                for i in 0..50 {
                    spend(2);
                    s.spawn(move |s| {
                        spend(i);
                        s.spawn(|_| spend(1000));
                    });
                }
            });
            (50 * 2 + 1225 + 50 * 1000, 100 + 49 + 1000)
        }
        "outer" => {
            // A task inside a join spawns into a scope outside of it.
            scope(|s| {
                join(
                    || {
                        spend(10);
                        s.spawn(|_| spend(100));
                        spend(20);
                    },
                    || spend(5),
                );
                spend(1);
            });
            (136, 110)
        }
        "broadcast" => {
            let pool = rayon_core::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
            pool.install(|| spend(4));
            pool.broadcast(|c| spend(10 * (c.index() as u64 + 1)));
            (4 + 60, 4 + 30)
        }
        "panic" => {
            let caught = std::panic::catch_unwind(|| {
                join(|| spend(5), || -> () { panic!("on purpose") });
            });
            assert!(caught.is_err());
            let caught = std::panic::catch_unwind(|| {
                scope(|s| {
                    s.spawn(|_| {
                        spend(9);
                        panic!("on purpose")
                    });
                    spend(1);
                })
            });
            assert!(caught.is_err());
            join(|| spend(20), || spend(30));
            (9 + 1 + 50, 9 + 30)
        }
        "lost" => {
            // Sides that have joined, and so own something, and unwind; sides whose sibling does.
            std::panic::set_hook(Box::new(|_| ()));
            let round = || {
                let caught = std::panic::catch_unwind(|| {
                    let unwinds = || -> () {
                        join(|| spend(5), || spend(6));
                        panic!("on purpose")
                    };
                    join(|| join(|| spend(7), || spend(8)), unwinds);
                });
                assert!(caught.is_err());
            };
            let pool = rayon_core::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
            pool.install(|| {
                (0..1000).for_each(|_| round());
                let before = LIVE.load(Ordering::Relaxed);
                (0..10_000).for_each(|_| round());
                drop(std::panic::take_hook());
                assert_eq!(LIVE.load(Ordering::Relaxed), before, "bytes after as many panics again");
            });
            (0, 0)
        }
        "detached" => {
            let (send, receive) = std::sync::mpsc::channel();
            spend(3);
            spawn(move || {
                spend(70);
                send.send(()).unwrap();
            });
            spend(4);
            receive.recv().unwrap();
            // The end of the task and the message are not the same moment.
            std::thread::sleep(std::time::Duration::from_millis(50));
            (77, 73)
        }
        "blocked" => {
            let (send, receive) = std::sync::mpsc::channel();
            in_place_scope(|s| {
                s.spawn(move |_| {
                    spend(6);
                    send.send(()).unwrap();
                });
                receive.recv().unwrap();
                spend(1);
            });
            (7, 6)
        }
        name => {
            let seed: u64 = name.parse().unwrap();
            let (mut work, mut span) = (0, 0);
            for i in 0..20 {
                random(seed * 1000 + i, 4);
                let (w, s) = silent(seed * 1000 + i, 4);
                work += w;
                span += s;
            }
            (work, span)
        }
    };
    eprintln!("expect {work} {span}");
}

fn main() {
    if let Ok(name) = std::env::var(PROGRAM) {
        return program(&name);
    }
    let out = std::env::temp_dir().join(format!("span-known-{}", std::process::id()));
    std::fs::create_dir_all(&out).unwrap();
    let names =
        ["tree", "skewed", "chain", "scope", "outer", "broadcast", "panic", "lost", "detached", "blocked"];
    let mut names: Vec<String> = names.iter().map(|&n| n.to_owned()).collect();
    names.extend((1..25).map(|n: u32| n.to_string()));
    let mut failed = 0;
    for name in &names {
        // With call sites, followed in detail and not, and as a whole: these are three algorithms.
        let ways = [("", ""), ("", "1000000000"), ("1", "")];
        for (threads, (whole, heavy)) in ["1", "2", "4"].into_iter().flat_map(|t| ways.map(|w| (t, w))) {
            let run = Command::new(std::env::current_exe().unwrap())
                .env(PROGRAM, name)
                .env("RAYON_NUM_THREADS", threads)
                .env("FARSIGHT_SPAN_OUT", &out)
                .env("FARSIGHT_SPAN_COST", "units")
                .env("FARSIGHT_SPAN_WHOLE", whole)
                .env("FARSIGHT_SPAN_HEAVY", heavy)
                .output()
                .unwrap();
            let err = String::from_utf8_lossy(&run.stderr);
            let expect = err
                .lines()
                .find_map(|l| l.strip_prefix("expect "))
                .unwrap_or_else(|| panic!("{name}: {err}"));
            let mut files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|f| f.unwrap().path()).collect();
            let file = files.pop().unwrap_or_else(|| panic!("{name} left no record: {err}"));
            let text = std::fs::read_to_string(&file).unwrap();
            std::fs::remove_file(&file).unwrap();
            let t = Dump::read(&text).unwrap().totals;
            let on_span: u64 = t.on_span.iter().map(|r| r.local.span).sum();
            let on_work: u64 = t.on_work.iter().map(|r| r.local.work).sum();
            // What unwinds is lost, but as a whole nothing is.
            if (format!("{} {}", t.work, t.span) != expect && name != "lost")
                || on_span != t.span
                || (on_work != t.work && name != "panic" && name != "lost")
            {
                eprintln!(
                    "{name} with {threads} threads (whole: {whole:?}, heavy: {heavy:?}): {} {} instead of {expect}; sites add up to {on_work} {on_span}",
                    t.work, t.span
                );
                failed += 1;
            }
        }
    }
    std::fs::remove_dir_all(&out).unwrap();
    assert_eq!(failed, 0, "programs with wrong results");
    println!("{} programs at 1, 2 and 4 threads", names.len());
}
