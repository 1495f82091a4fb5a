//! Seats for the processes of a run that is followed: the launcher's side of `wire::seats`.
//!
//! Some seats are always ready, each with memory that is prepared as the first program's was. Who has sat down is a
//! [`Guest`]: a process that is not our child, so that its end can be seen but not how it ended.

use crate::error::LaunchError;
use crate::results::Results;
use std::collections::VecDeque;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::Ordering::*;
use std::time::Duration;
use wire::seats::{LOBBY_MARK, Lobby, SEATS_MAX, came};

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
    /// Its id.
    pub pid: u32,
    /// Whether it was forked: it goes on where its parent was. Otherwise its program begins.
    pub forked: bool,
    shared: Results,
    process: Watched,
}

/// The end of a process that is not our child; `None` if it has come already.
pub(crate) struct Watched(Option<OwnedFd>);

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
                let forked = seat.came.load(Relaxed) == came::FORKED;
                guests.push(Guest { pid, forked, shared, process: Watched::new(pid) });
            }
        }
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop_front();
            self.first += 1;
        }
        self.prepare(prepare)?;
        Ok(guests)
    }

    /// Nobody else is taken in. How many found no seat.
    pub fn close(&mut self) -> u32 {
        self.lobby().closed.store(1, Release);
        self.lobby().refused.load(Acquire)
    }
}

impl Guest {
    pub(crate) fn split(self) -> (Watched, Results) {
        (self.process, self.shared)
    }
}

impl Watched {
    fn new(pid: u32) -> Self {
        // SAFETY: no memory is involved; the result is checked before it is owned.
        let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
        // SAFETY: a descriptor that was just made and that nothing else owns.
        Watched((fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd as i32) }))
    }

    /// Waits for the end, at most this long; whether it has come.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let Some(process) = &self.0 else { return true };
        let mut poll = libc::pollfd { fd: process.as_raw_fd(), events: libc::POLLIN, revents: 0 };
        let time = libc::timespec {
            tv_sec: longest.as_secs() as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        // SAFETY: live records; the mask is left as it is.
        unsafe { libc::ppoll(&raw mut poll, 1, &raw const time, std::ptr::null()) > 0 }
    }
}
