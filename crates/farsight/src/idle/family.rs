//! The processes of a run that is followed, besides the first one.
//!
//! ```text
//! receive   gives seats to forked children and executed programs, and each executed one its landmarks
//! watch     notes when they end
//! parts     all of them, once the first program has ended: what is still running is cut off there
//! ```
//! Both run in threads of their own, which sleep until a process calls or ends. Nothing is read of a profile before the
//! end: the cores are the program's.

use std::collections::HashMap;
use std::ffi::OsString;
use std::mem::offset_of;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::*};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ::idle::Landmarks;
use launch::preloaded::monotonic_ns;
use launch::seats::{self, Guest, Seats};
use launch::watch::Watch;
use launch::{LaunchError, Results};
use wire::idle::{Header, LANDMARKS_OFFSET, Landmark};

/// How long it may take until the end of the first program is noticed.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// All processes but the first.
pub struct Family<'a> {
    /// What a seat's memory begins with.
    image: &'a [u8],
    /// The landmarks of an executable.
    landmarks: &'a (dyn Fn(&Path) -> Landmarks + Sync),
    known: Mutex<HashMap<PathBuf, Landmarks>>,
    members: Mutex<Vec<Member>>,
    watch: Watch,
    problems: Mutex<Vec<String>>,
    over: AtomicBool,
}

struct Member {
    guest: Guest,
    /// Its landmarks were seen to.
    served: bool,
    ended_ns: Option<u64>,
}

/// One program in one process.
pub struct Part {
    /// The process.
    pub pid: u32,
    /// The executable.
    pub program: PathBuf,
    /// Its arguments, its own name first.
    pub command: Vec<OsString>,
    /// `CLOCK_MONOTONIC` when it began.
    pub started_ns: u64,
    /// Likewise when it had certainly ended, or was cut off.
    pub ended_ns: u64,
    /// Whether it still ran when the first program ended.
    pub running: bool,
    /// Whether a later part is what it executed in its place.
    pub replaced: bool,
    /// What its landmarks lack.
    pub doubts: Vec<String>,
    memory: Memory,
}

enum Memory {
    /// Of a process that has ended, or become another program.
    Still(Guest),
    /// Of one that goes on writing.
    Copy(Vec<u8>),
}

impl Memory {
    fn bytes(&self) -> &[u8] {
        match self {
            Memory::Still(guest) => guest.shared().bytes(),
            Memory::Copy(copy) => copy,
        }
    }
}

impl Part {
    /// What the runtime has left.
    pub fn bytes(&self) -> &[u8] {
        self.memory.bytes()
    }
}

/// Lets a program go that waits for its landmarks.
pub fn give(shared: &Results, landmarks: &[Landmark]) {
    shared.put_bytes(LANDMARKS_OFFSET, &::idle::landmark_bytes(landmarks));
    shared.word(offset_of!(Header, landmarks) as u64).store(landmarks.len() as u32, Release);
    let go = shared.word(offset_of!(Header, go) as u64);
    go.store(1, Release);
    seats::wake(go);
}

impl<'a> Family<'a> {
    /// With what is known of the first program already.
    pub fn new(
        image: &'a [u8],
        landmarks: &'a (dyn Fn(&Path) -> Landmarks + Sync),
        first: (PathBuf, Landmarks),
    ) -> Result<Family<'a>, LaunchError> {
        Ok(Family {
            image,
            landmarks,
            known: Mutex::new(HashMap::from([first])),
            members: Mutex::default(),
            watch: Watch::new()?,
            problems: Mutex::default(),
            over: AtomicBool::new(false),
        })
    }

    /// Takes in who comes, until the end.
    pub fn receive(&self, mut seats: Seats) {
        loop {
            let (over, seen) = (self.over.load(Acquire), seats.calls());
            match seats.arrivals(&|memory| memory.put_bytes(0, self.image)) {
                Ok(guests) => guests.into_iter().for_each(|guest| self.admit(guest)),
                Err(error) => {
                    lock(&self.problems).push(format!("children are no longer followed: {error}"));
                    break;
                }
            }
            self.serve();
            if over {
                break;
            }
            seats.wait(seen, LOOK_EVERY);
        }
        let refused = seats.close();
        // Who was waiting for landmarks when the seats were closed goes on.
        self.serve();
        if refused > 0 {
            lock(&self.problems)
                .push(format!("children that were not followed, because too many came at once: {refused}"));
        }
    }

    fn admit(&self, guest: Guest) {
        let mut members = lock(&self.members);
        let ended_ns = (!self.watch.add(&guest, members.len() as u64)).then(monotonic_ns);
        members.push(Member { guest, served: false, ended_ns });
    }

    /// Gives executed programs that ask for them their landmarks. Forked children have their parents'.
    fn serve(&self) {
        for member in lock(&self.members).iter_mut().filter(|m| !m.served) {
            let shared = member.guest.shared();
            let Some(program) = asks(shared) else { continue };
            member.served = true;
            if shared.get::<u64>(offset_of!(Header, base) as u64) == 0 {
                let mut known = lock(&self.known);
                let found = known.entry(program).or_insert_with_key(|program| (self.landmarks)(program));
                give(shared, &found.list);
            }
        }
    }

    /// Notes who ends, until the end.
    pub fn watch(&self) {
        loop {
            let over = self.over.load(Acquire);
            let ended = self.watch.wait(if over { Duration::ZERO } else { LOOK_EVERY });
            let now_ns = monotonic_ns();
            let mut members = lock(&self.members);
            for &number in &ended {
                if let Some(member) = usize::try_from(number).ok().and_then(|n| members.get_mut(n)) {
                    member.ended_ns = Some(now_ns);
                    member.guest.ended();
                }
            }
            if over && ended.is_empty() {
                break;
            }
        }
    }

    /// The first program has ended.
    pub fn end(&self) {
        self.over.store(true, Release);
    }

    /// Everybody who began, in the order in which they did, and what went wrong. Once both threads are done.
    pub fn parts(self) -> (Vec<Part>, Vec<String>) {
        let members = std::mem::take(&mut *lock(&self.members));
        let mut parts: Vec<Part> = members.into_iter().filter_map(part).collect();
        parts.sort_by_key(|p| p.started_ns);
        let known = std::mem::take(&mut *lock(&self.known));
        for part in &mut parts {
            part.doubts = known.get(&part.program).map(|found| found.problems.clone()).unwrap_or_default();
        }
        for i in 0..parts.len() {
            let next = replacement(&parts[i + 1..], parts[i].pid, parts[i].ended_ns);
            if let Some(began_ns) = next {
                let before = &mut parts[i];
                (before.replaced, before.running, before.ended_ns) = (true, false, began_ns);
            }
        }
        (parts, std::mem::take(&mut *lock(&self.problems)))
    }
}

/// When another program began in a process that had not ended before `ended_ns`.
pub fn replacement(later: &[Part], pid: u32, ended_ns: u64) -> Option<u64> {
    later.iter().find(|p| p.pid == pid).map(|p| p.started_ns).filter(|&began_ns| began_ns <= ended_ns)
}

/// The executable of a process that has said so.
fn asks(shared: &Results) -> Option<PathBuf> {
    if shared.word(offset_of!(Header, asked) as u64).load(Acquire) == 0 {
        return None;
    }
    // The process does not write its first page any more but for counts; it is copied as it is.
    let page: [u8; LANDMARKS_OFFSET as usize] = shared.get(0);
    ::idle::introduced(&page).map(|of| path(of.program))
}

fn part(member: Member) -> Option<Part> {
    let pid = member.guest.pid();
    let running = member.ended_ns.is_none();
    let ended_ns = member.ended_ns.unwrap_or_else(monotonic_ns);
    let memory =
        if running { Memory::Copy(member.guest.shared().snapshot()) } else { Memory::Still(member.guest) };
    // Who took a seat and ended before it could begin has nothing to tell.
    let of = ::idle::introduced(memory.bytes()).filter(|of| of.started_ns > 0)?;
    Some(Part {
        pid,
        program: path(of.program),
        command: of.command.into_iter().map(OsString::from_vec).collect(),
        started_ns: of.started_ns,
        ended_ns,
        running,
        replaced: false,
        doubts: Vec::new(),
        memory,
    })
}

fn path(bytes: Vec<u8>) -> PathBuf {
    PathBuf::from(OsString::from_vec(bytes))
}

/// A lock that nobody leaves half done: whoever panics is heard of when the threads are joined.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
