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
use std::sync::{Arc, Mutex, PoisonError};
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
    seats: Mutex<Seats>,
    /// What the session of each process listens to.
    orders: Mutex<HashMap<u32, Arc<Orders>>>,
    done: Mutex<Vec<Child>>,
    over: AtomicBool,
}

impl<'a> Children<'a> {
    /// Of the program `first`, whose session listens to `orders`.
    pub(crate) fn new(config: &'a Config<'a>, seats: Seats, first: u32, orders: Arc<Orders>) -> Self {
        Children {
            config,
            seats: Mutex::new(seats),
            orders: Mutex::new(HashMap::from([(first, orders)])),
            done: Mutex::new(Vec::new()),
            over: AtomicBool::new(false),
        }
    }

    /// Gives everybody who comes a session, until the end. What went wrong.
    pub(crate) fn receive<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Vec<String> {
        let mut problems = Vec::new();
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let over = self.over.load(Acquire);
            match seats.arrivals(&|results| prepare(self.config, results)) {
                Ok(guests) => guests.into_iter().for_each(|guest| self.admit(guest, scope)),
                Err(error) => {
                    problems.push(format!("children are no longer followed: {error}"));
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
            problems
                .push(format!("children that were not followed, because too many came at once: {refused}"));
        }
        problems
    }

    fn admit<'scope>(&'scope self, guest: Guest, scope: &'scope Scope<'scope, '_>) {
        let orders = Arc::new(Orders::default());
        if let Some(before) = self.orders().insert(guest.pid, Arc::clone(&orders)) {
            before.superseded.store(true, Relaxed);
        }
        scope.spawn(move || self.experiment(guest, orders));
    }

    fn experiment(&self, guest: Guest, orders: Arc<Orders>) {
        let pid = guest.pid;
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
        // Nothing that a child's session can fail with is known: places that it lacks are problems of its own.
        if let Ok(finished) = session.run(&mut |_| false) {
            let child = Child { pid, program, command, started_unix_ns, finished };
            self.done.lock().unwrap_or_else(PoisonError::into_inner).push(child);
        }
    }

    /// The first program has ended.
    pub(crate) fn end(&self) {
        self.over.store(true, Release);
        self.orders().values().for_each(|orders| orders.over.store(true, Relaxed));
    }

    fn orders(&self) -> std::sync::MutexGuard<'_, HashMap<u32, Arc<Orders>>> {
        self.orders.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What came of them, in the order in which they began.
    pub(crate) fn done(self) -> Vec<Child> {
        let mut done = self.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|child| child.started_unix_ns);
        done
    }
}
