//! Idleness: in which calling contexts a program worked, and for how much idleness each of them answers.
//!
//! The terms are those of Tallent and Mellor-Crummey, "Effective Performance Measurement and Analysis of
//! Multithreaded Applications" (PPoPP 2009). Contexts form one tree from which two are read: the *logical* one
//! (tasks below their creators, without the scheduler's frames) leaves out contexts that are physical only, the
//! *physical* one (what the stacks held) those that are logical only.
//!
//! Facts only: what is overhead, which frames belong to a runtime, and what to do about it is concluded from
//! names by `analyse`. All values are exclusive: of a context itself, not of those below it.

use crate::canon::Invalid;

/// What one run measured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Idle {
    /// Cores reckoned with.
    pub cores: u32,
    /// CPU time between two samples of a thread.
    pub period_ns: u64,
    /// The user's own rules for classifying frames, as given; empty without any.
    pub rules: String,
    /// How threads were sampled.
    pub backend: String,
    /// Wall-clock time that is accounted for.
    pub span_ns: u64,
    /// Core time (all cores) while no thread worked.
    pub nobody_ns: u64,
    /// Core time that threads wanted and others had: other programs, or more threads than cores. Slightly negative
    /// when threads used cores while they counted as waiting.
    pub preempted_ns: i64,
    /// Threads that ever ran.
    pub threads: u64,
    /// Samples taken.
    pub samples: u64,
    /// Periods of CPU time that passed without a sample.
    pub lost: u64,
    /// Samples of tasks that were placed below their creator.
    pub stitched: u64,
    /// Samples of tasks whose creator was not found.
    pub orphans: u64,
    /// What contexts can be.
    pub frames: Vec<Frame>,
    /// The contexts; a parent stands before its children.
    pub contexts: Vec<Context>,
    /// Where in the source the time of a function went.
    pub lines: Vec<Line>,
    /// The locks that somebody waited for.
    pub locks: Vec<Lock>,
}

/// What kind of place a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum FrameKind {
    /// A function that was called.
    #[default]
    Call,
    /// A function that was inlined into the one around it.
    Inline,
    /// A loop.
    Loop,
    /// The beginning of a task; the name says of what kind.
    Task,
    /// The beginning of a thread.
    Thread,
    /// A wait; the name says for what.
    Wait,
    /// Looking for work.
    Spin,
    /// None of the program's: start-up, a task without a known creator.
    Other,
}

/// A function, inlined or not, a loop, or a mark.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Frame {
    /// What kind.
    pub kind: FrameKind,
    /// Readable name.
    pub name: String,
    /// Path of the executable or library; empty without one.
    pub object: String,
    /// Source file, empty when not known.
    pub file: String,
    /// Source line: of the declaration, or of the loop; 0 when not known.
    pub line: u32,
}

/// In which of the two trees a context stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Chord {
    /// In both.
    #[default]
    Both,
    /// On the stack, without a meaning in the program: a scheduler's frame.
    Physical,
    /// Part of the calling context, on another stack: a frame of the creator.
    Logical,
}

/// A calling context and its own values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Context {
    /// Its parent, a position in [`Idle::contexts`].
    pub parent: Option<u32>,
    /// A position in [`Idle::frames`].
    pub frame: u32,
    /// In which trees it stands.
    pub chord: Chord,
    /// Samples, or waits.
    pub samples: u64,
    /// CPU time, of work and of overhead.
    pub cpu_ns: u64,
    /// Core time that was idle while this ran and for which it answers.
    pub idle_ns: i64,
    /// Time waited.
    pub blocked_ns: u64,
}

/// The time of one source line within one function.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Line {
    /// The function, a position in [`Idle::frames`], whose file this is a line of.
    pub frame: u32,
    /// The line.
    pub line: u32,
    /// CPU time.
    pub cpu_ns: u64,
    /// Idle core time.
    pub idle_ns: i64,
}

/// A lock, or another object that threads waited for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// Its address.
    pub address: u64,
    /// What it is.
    pub kind: String,
    /// Time waited for it, of all threads.
    pub wait_ns: u64,
    /// Part of it between a release and the next acquisition.
    pub handed_over_ns: u64,
    /// Waits.
    pub contended: u64,
    /// Acquisitions since the first wait, where they can be seen; else 0.
    pub acquisitions: u64,
    /// The context of the longest wait.
    pub waiter: Option<u32>,
    /// Contexts that held it, and for how long others waited meanwhile.
    pub holders: Vec<Holder>,
}

/// Who made others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Holder {
    /// The context in which the lock was let go.
    pub context: u32,
    /// Waiting time of others while it was held here.
    pub blame_ns: u64,
    /// How often.
    pub count: u64,
}

impl Idle {
    /// Checks the canonical form: parents before children, positions that exist.
    pub fn validate(&self) -> Result<(), Invalid> {
        let frames = self.frames.len() as u64;
        for (i, context) in self.contexts.iter().enumerate() {
            if u64::from(context.frame) >= frames || context.parent.is_some_and(|p| p as usize >= i) {
                return Err(Invalid::Whole("contexts must follow their parents and have a frame"));
            }
        }
        if self.lines.iter().any(|l| u64::from(l.frame) >= frames) {
            return Err(Invalid::Whole("lines must belong to a frame"));
        }
        let known = |context: u32| (context as usize) < self.contexts.len();
        for lock in &self.locks {
            if !lock.holders.iter().all(|h| known(h.context)) || !lock.waiter.is_none_or(known) {
                return Err(Invalid::Whole("locks must refer to contexts that exist"));
            }
        }
        Ok(())
    }

    /// Brings damaged data into canonical form: what refers to nothing is dropped, with all below it.
    pub fn normalize(&mut self) {
        let mut place: Vec<Option<u32>> = Vec::with_capacity(self.contexts.len());
        let mut kept: Vec<Context> = Vec::with_capacity(self.contexts.len());
        for context in &self.contexts {
            let parent = match context.parent {
                None => Some(None),
                Some(p) => place.get(p as usize).copied().flatten().map(Some),
            };
            let good = parent.filter(|_| (context.frame as usize) < self.frames.len());
            place.push(good.map(|parent| {
                kept.push(Context { parent, ..*context });
                kept.len() as u32 - 1
            }));
        }
        self.contexts = kept;
        let moved = |context: u32| place.get(context as usize).copied().flatten();
        let frames = self.frames.len();
        self.lines.retain(|l| (l.frame as usize) < frames);
        for lock in &mut self.locks {
            lock.waiter = lock.waiter.and_then(moved);
            lock.holders.retain_mut(|h| moved(h.context).map(|to| h.context = to).is_some());
        }
    }
}
