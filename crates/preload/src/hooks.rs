//! What a runtime is told, and the words it is told in.
//!
//! Calls are statically dispatched; a method left at its default compiles to nothing, and [`Interest`] removes
//! even the bookkeeping around it.
//!
//! # Order of events
//! | call | events around the real function |
//! |---|---|
//! | `pthread_mutex_lock`, free | `before_take`, `acquired(contended: false)` |
//! | `pthread_mutex_lock`, taken | `before_take`, `before_wait`, *lock*, `after_wait`, `acquired(contended: true)` |
//! | `pthread_mutex_unlock` | `before_wake`, `released`, *unlock*, `after_wake` |
//! | `pthread_cond_wait(c, m)` | `before_wake(m)`, `released(m)`, `before_wait(c)`, *wait*, `after_wait(c)`, `acquired(m, true)` |
//! | `pthread_barrier_wait` | `before_wake`, `before_wait`, *wait*, `after_wait` |
//! | `pthread_cond_signal`, `sem_post`, futex wake, `kill`, `write`, ... | `before_wake`, *call*, `after_wake` |
//! | everything else that blocks | `before_wait`, *call*, `after_wait` |
//!
//! A thread that is cancelled while it waits leaves its wrapper by unwinding: its `after_wait` arrives with
//! [`Outcome::Cancelled`] before the thread's next wait or its end, whichever comes first.
//!
//! # Rules for implementations
//! - Called in the program's threads, with the program's locks held: no heap, no lock that another hook may
//!   hold while it waits, no panic, no interposed function (use `sys` and `real`).
//! - They may nest: the program's own signal handlers call `sem_post`, `write` and others at any moment, also
//!   while the same thread is inside a hook. [`Thread::busy`] tells.
//! - `errno` must be left alone; the system calls in `sys` do that.
//! - `before_take`, `acquired`, `released`, `before_wake` and `after_wake` are on the fast path of every lock.

use crate::thread::Thread;

/// Which events a runtime wants; the rest costs nothing but the call through the wrapper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interest(u32);

impl Interest {
    /// Nothing but threads and endings.
    pub const NONE: Self = Self(0);
    /// `acquired` and `released` of mutexes, read-write locks and spin locks.
    pub const LOCKS: Self = Self(1);
    /// Waiting for another thread: locks, conditions, barriers, semaphores, joins, futexes, signals.
    pub const SYNC: Self = Self(2);
    /// `before_wake` and `after_wake`.
    pub const WAKES: Self = Self(4);
    /// Sleeping for a time.
    pub const SLEEP: Self = Self(8);
    /// `poll`, `select`, `epoll_wait` and their kin.
    pub const POLL: Self = Self(16);
    /// Blocking input and output.
    pub const IO: Self = Self(32);
    /// Waiting for child processes.
    pub const CHILD: Self = Self(64);
    /// Everything above.
    pub const ALL: Self = Self(127);
    /// `before_take`: for those who act before a lock is taken. Who only watches needs no such event.
    pub const TAKES: Self = Self(128);

    /// Both.
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether any of `other` is wanted.
    pub const fn wants(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// Why a thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WaitKind {
    /// A mutex (`pthread` or C11).
    Mutex,
    /// A read-write lock, to read.
    Read,
    /// A read-write lock, to write.
    Write,
    /// A spin lock: the thread burns its core.
    Spin,
    /// A condition variable.
    Condition,
    /// A barrier.
    Barrier,
    /// A semaphore (POSIX or System V).
    Semaphore,
    /// The end of a thread; the object is its `pthread_t`.
    Join,
    /// A futex word, through `syscall`.
    Futex,
    /// A priority-inheriting futex lock, through `syscall`.
    FutexLock,
    /// A signal.
    Signal,
    /// A point in time.
    Sleep,
    /// Readiness of descriptors; the object is the descriptor of an epoll instance, else 0.
    Poll,
    /// Input; the object is the descriptor.
    Input,
    /// Output; the object is the descriptor.
    Output,
    /// A connection to arrive or to be made; the object is the descriptor.
    Connection,
    /// Data to reach the disk; the object is the descriptor.
    Storage,
    /// A child process.
    Child,
}

/// One wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// Why.
    pub kind: WaitKind,
    /// Address of the lock or futex word, or what [`WaitKind`] says.
    pub object: usize,
}

/// How a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was waited for has come, as far as libc can tell.
    Done,
    /// The real function reported an error: timeout, interruption, a futex value that had changed.
    Failed,
    /// The thread was cancelled or left by an exception.
    Cancelled,
}

/// How a thread may end another one's wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum WakeKind {
    /// Unlocking a mutex.
    Mutex,
    /// Unlocking a read-write lock.
    RwLock,
    /// Unlocking a spin lock.
    Spin,
    /// Signalling a condition.
    Condition,
    /// Arriving at a barrier.
    Barrier,
    /// Posting a semaphore.
    Semaphore,
    /// Waking waiters of a futex word.
    Futex,
    /// Sending a signal; the object is the signal's number.
    Signal,
    /// Writing, sending or connecting; the object is the descriptor.
    Output,
}

/// One call that may wake others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// How.
    pub kind: WakeKind,
    /// Address or number, as in [`WakeKind`].
    pub object: usize,
    /// At most this many threads wake; `u32::MAX` for all.
    pub most: u32,
}

/// What kind of lock was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum LockKind {
    /// A mutex.
    Mutex,
    /// A read-write lock held by a reader.
    Read,
    /// A read-write lock held by a writer.
    Write,
    /// A read-write lock let go by either.
    Either,
    /// A spin lock.
    Spin,
}

/// A lock that was taken or let go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// Its kind.
    pub kind: LockKind,
    /// Its address.
    pub address: usize,
}

/// Where a thread came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The thread that runs `main`.
    Main,
    /// Created by a thread that we watch; the token that [`Hooks::thread_created`] gave.
    Created(u64),
    /// Met for the first time while running: created by libc itself or without `pthread_create`.
    Unknown,
}

/// How the process image is about to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `exit` or a return from `main`.
    Exit,
    /// `_exit`, `_Exit`, `quick_exit` or `exit_group`.
    Immediate,
    /// `abort`.
    Abort,
    /// One of the `exec` functions; if it fails, the program goes on.
    Exec,
}

/// A program that is about to be executed.
#[derive(Clone, Copy, Debug)]
pub struct Executing<'a> {
    /// Its path as it was given.
    pub path: &'a [u8],
    /// Whether it is looked for in `PATH`.
    pub searched: bool,
    /// Whether its environment leads to us as ours did, as far as that is known.
    pub led: bool,
}

/// What becomes of a forked child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AfterFork {
    /// It goes on unprofiled.
    Leave,
    /// The hooks have made themselves new; the child's thread is registered and profiled.
    Follow,
}

/// A runtime. See the module's rules.
#[allow(unused_variables)]
pub trait Hooks: Sized + 'static {
    /// What the runtime keeps per thread. Made once per *slot*; slots are reused by later threads, so
    /// [`Hooks::thread_started`] must reset what belongs to one thread. Must not need dropping.
    type Local: 'static;

    /// Which events are wanted.
    const INTEREST: Interest;

    /// A slot's first value.
    fn new_local() -> Self::Local;

    /// Once, before `main`, in ordinary context, before the main thread is registered. `false` disables us.
    fn start() -> bool {
        true
    }

    /// Whether programs that this one executes are to be profiled too: our entry stays in `LD_PRELOAD`.
    fn keep_preload() -> bool {
        false
    }

    /// The thread is about to block.
    #[inline(always)]
    fn before_wait(thread: &Thread<Self::Local>, wait: Wait) {}
    /// The thread runs again.
    #[inline(always)]
    fn after_wait(thread: &Thread<Self::Local>, wait: Wait, outcome: Outcome) {}
    /// The thread is about to do what may wake others.
    #[inline(always)]
    fn before_wake(thread: &Thread<Self::Local>, wake: Wake) {}
    /// It has done so.
    #[inline(always)]
    fn after_wake(thread: &Thread<Self::Local>, wake: Wake) {}
    /// The thread is about to take a lock or a semaphore, free or not: the last moment at which nobody waits for it.
    #[inline(always)]
    fn before_take(thread: &Thread<Self::Local>) {}
    /// The thread holds the lock now.
    #[inline(always)]
    fn acquired(thread: &Thread<Self::Local>, lock: Lock, contended: bool) {}
    /// The thread is about to let the lock go.
    #[inline(always)]
    fn released(thread: &Thread<Self::Local>, lock: Lock) {}

    /// The thread is about to create another one; the token reaches the child's `thread_started`.
    fn thread_created(parent: &Thread<Self::Local>) -> u64 {
        0
    }
    /// It could not; the token is of no use any more.
    fn thread_create_failed(parent: &Thread<Self::Local>, token: u64) {}
    /// First words of a thread, in that thread.
    fn thread_started(thread: &Thread<Self::Local>, origin: Origin) {}
    /// Last words of a thread, in that thread, after its thread-local destructors: wakes its joiner next.
    fn thread_ended(thread: &Thread<Self::Local>) {}

    /// In a forked child, with only the forking thread left. Locals are copies of the parent's.
    fn forked(thread: Option<&Thread<Self::Local>>) -> AfterFork {
        AfterFork::Leave
    }
    /// Another program is about to be executed: by this process, by a `vfork` child of it (in its parent's memory), or by
    /// `posix_spawn`. It may not come to that.
    fn executing(program: Executing<'_>) {}
    /// The environment variable by which executed programs find us; see [`Executing::led`].
    const LEADS: &'static core::ffi::CStr = c"";
    /// A shared library has been unloaded (`closed`) or is about to be.
    fn unloading(closed: bool) {}
    /// The image is about to end. May come more than once, from any thread, while others run.
    fn ending(ending: Ending) {}
}
