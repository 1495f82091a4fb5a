//! Seats for the processes of a run that is followed: the launcher's side of `wire::seats`.
//!
//! Some seats are always ready, each with memory that is prepared as the first program's was. Who has sat down is a
//! [`Guest`].

use crate::error::LaunchError;
use crate::results::Results;
use crate::stranger::Stranger;
use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering::*};
use std::time::Duration;
use wire::seats::{LOBBY_MARK, Lobby, SEATS_MAX};

/// Seats ahead of those that were taken.
const AHEAD: u32 = 32;

/// The seats of a run.
pub struct Seats {
    lobby: Results,
    bytes: u64,
    /// The seats from `first` on: memory, until somebody sits there.
    waiting: VecDeque<Option<Results>>,
    first: usize,
}

/// A process that has taken a seat.
pub struct Guest {
    shared: Results,
    process: Stranger,
}

impl Seats {
    /// With a first seat whose memory is somebody else's already: the first program's.
    pub(crate) fn new(first: &Results, bytes: u64, prepare: &dyn Fn(&Results)) -> Result<Seats, LaunchError> {
        let lobby = Results::new(wire::seats::BYTES as u64)?;
        let mut seats = Seats { lobby, bytes, waiting: VecDeque::new(), first: 1 };
        seats.lobby().version.store(wire::VERSION, Relaxed);
        seats.lobby().seats[0].descriptor.store(first.fd() as u32, Relaxed);
        seats.lobby().prepared.store(1, Release);
        seats.prepare(prepare)?;
        Ok(seats)
    }

    /// What the variable says.
    pub(crate) fn variable(&self) -> String {
        format!("{}/proc/{}/fd/{}", char::from(LOBBY_MARK), std::process::id(), self.lobby.fd())
    }

    fn lobby(&self) -> &Lobby {
        self.lobby.view()
    }

    /// Sees to it that there are seats.
    fn prepare(&mut self, prepare: &dyn Fn(&Results)) -> Result<(), LaunchError> {
        loop {
            let (prepared, taken) = (self.lobby().prepared.load(Relaxed), self.lobby().taken.load(Relaxed));
            if prepared >= taken + AHEAD || prepared as usize >= SEATS_MAX {
                return Ok(());
            }
            let memory = Results::new(self.bytes)?;
            prepare(&memory);
            self.lobby().seats[prepared as usize].descriptor.store(memory.fd() as u32, Relaxed);
            self.waiting.push_back(Some(memory));
            self.lobby().prepared.store(prepared + 1, Release);
        }
    }

    /// Who has sat down since the last call. (Who took a seat and died before it said so leaves it empty.)
    pub fn arrivals(&mut self, prepare: &dyn Fn(&Results)) -> Result<Vec<Guest>, LaunchError> {
        let mut guests = Vec::new();
        let lobby: &Lobby = self.lobby.view();
        for (memory, seat) in self.waiting.iter_mut().zip(&lobby.seats[self.first..]) {
            let pid = seat.pid.load(Acquire);
            if pid != 0
                && let Some(shared) = memory.take()
            {
                guests.push(Guest { shared, process: Stranger::new(pid as libc::pid_t) });
            }
        }
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.first += 1;
        }
        self.prepare(prepare)?;
        Ok(guests)
    }

    /// How often somebody has called so far.
    pub fn calls(&self) -> u32 {
        self.lobby().calls.load(Acquire)
    }

    /// Sleeps until somebody calls, at most this long; not at all if somebody has since there were `seen` calls.
    pub fn wait(&self, seen: u32, longest: Duration) {
        let time = libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        let word = self.lobby().calls.as_ptr();
        // SAFETY: both are live.
        unsafe { libc::syscall(libc::SYS_futex, word, libc::FUTEX_WAIT, seen, &raw const time) };
    }

    /// Nobody else is taken in. How many found no seat.
    pub fn close(&mut self) -> u32 {
        self.lobby().closed.store(1, Release);
        self.lobby().refused.load(Acquire)
    }
}

impl Guest {
    /// Its id.
    pub fn pid(&self) -> u32 {
        self.process.pid() as u32
    }

    /// Its memory.
    pub fn shared(&self) -> &Results {
        &self.shared
    }

    /// What becomes ready to read when it ends; `None` if it has.
    pub(crate) fn end(&self) -> Option<BorrowedFd<'_>> {
        self.process.end()
    }

    /// It has ended: its memory stays, the descriptors go.
    pub fn ended(&mut self) {
        self.process.forget();
        self.shared.close();
    }

    pub(crate) fn split(self) -> (Stranger, Results) {
        (self.process, self.shared)
    }
}

/// Wakes who sleeps on a word of shared memory.
pub fn wake(word: &AtomicU32) {
    // SAFETY: the word is live.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}
