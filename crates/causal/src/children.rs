//! The program's children, where they are followed: each gets a session of its own, in a thread of its own.
//!
//! ```text
//! receive   looks for processes that have taken a seat, until the first program has ended
//!   session   experiments on one image: until its process ends or becomes another program, or the first one ends
//! ```
//! A process that executes another program ends one image and begins the next.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use launch::preloaded::Running;
use launch::seats::{Guest, Seats};

use crate::session::{Config, Finished, Orders, Session, prepare};

/// How often somebody is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// A child that was experimented on.
pub struct Child {
    /// Its process.
    pub pid: u32,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub command: Vec<OsString>,
    /// When it began, nanoseconds since the Unix epoch.
    pub started_unix_ns: u64,
    /// What came of it.
    pub finished: Finished,
}

/// All children of a run.
pub(crate) struct Children<'a> {
    config: &'a Config<'a>,
    /// What the session of each process listens to.
    orders: Mutex<HashMap<u32, Arc<Orders>>>,
    done: Mutex<Vec<Child>>,
    problems: Mutex<Vec<String>>,
    over: AtomicBool,
}

impl<'a> Children<'a> {
    /// Of the program `first`, whose session listens to `orders`.
    pub(crate) fn new(config: &'a Config<'a>, first: u32, orders: Arc<Orders>) -> Self {
        Children {
            config,
            orders: Mutex::new(HashMap::from([(first, orders)])),
            done: Mutex::default(),
            problems: Mutex::default(),
            over: AtomicBool::new(false),
        }
    }

    /// Gives everybody who comes a session, until the end.
    pub(crate) fn receive<'scope>(&'scope self, mut seats: Seats, scope: &'scope Scope<'scope, '_>) {
        loop {
            let over = self.over.load(Acquire);
            match seats.arrivals(&|results| prepare(self.config, results)) {
                Ok(guests) => guests.into_iter().for_each(|guest| self.admit(guest, scope)),
                Err(error) => {
                    self.problem(format!("children are no longer followed: {error}"));
                    break;
                }
            }
            if over {
                break;
            }
            std::thread::sleep(LOOK_EVERY);
        }
        let refused = seats.close();
        if refused > 0 {
            self.problem(format!(
                "children that were not followed, because too many came at once: {refused}"
            ));
        }
    }

    fn admit<'scope>(&'scope self, guest: Guest, scope: &'scope Scope<'scope, '_>) {
        let orders = Arc::new(Orders::default());
        if let Some(before) = lock(&self.orders).insert(guest.pid(), Arc::clone(&orders)) {
            before.superseded.store(true, Relaxed);
        }
        // `end` tells those that it finds in the list; this one may have come too late for that.
        if self.over.load(Acquire) {
            orders.over.store(true, Relaxed);
        }
        scope.spawn(move || self.experiment(guest, orders));
    }

    fn experiment(&self, guest: Guest, orders: Arc<Orders>) {
        let pid = guest.pid();
        let running = Running::guest(guest);
        let (program, command) = (running.program().to_owned(), running.command());
        let started_unix_ns = running.started_unix_ns();
        let config = Config {
            end_to_end: None,
            seed: self.config.seed.wrapping_add(pid.into()),
            warmup: Duration::ZERO,
            ..self.config.clone()
        };
        let session = Session::of_child(&config, running, orders);
        match session.run(&mut |_| false) {
            Ok(finished) => {
                lock(&self.done).push(Child { pid, program, command, started_unix_ns, finished });
            }
            Err(error) => self.problem(format!("process {pid} ({}): {error}", program.display())),
        }
    }

    fn problem(&self, text: String) {
        lock(&self.problems).push(text);
    }

    /// The first program has ended.
    pub(crate) fn end(&self) {
        self.over.store(true, Release);
        lock(&self.orders).values().for_each(|orders| orders.over.store(true, Relaxed));
    }

    /// What came of them, in the order in which they began, and what went wrong.
    pub(crate) fn done(self) -> (Vec<Child>, Vec<String>) {
        let mut done = std::mem::take(&mut *lock(&self.done));
        done.sort_by_key(|child| child.started_unix_ns);
        let problems = std::mem::take(&mut *lock(&self.problems));
        (done, problems)
    }
}

/// A lock that nobody leaves half done: whoever panics is heard of when the sessions end.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
