//! Notes, and the line of notes that one sample makes: a logical call path on its way into the tree.
//!
//! A logical call path is a sequence of bichords, each a group of physical frames with a group of logical ones
//! (Tallent and Mellor-Crummey, "Effective Performance Measurement and Analysis of Multithreaded Applications",
//! PPoPP 2009). As in that paper's appendix the tree does not hold bichords but their notes, so that paths
//! which share only a part of a bichord share nodes. Of the five associations three classes remain, and a note's
//! key says which (`wire::idle::chord`):
//! ```text
//! 1-1        BOTH
//! 1-0, M-0   PHYSICAL
//! 1-M        PHYSICAL for the 1, LOGICAL for each of the M
//! ```
//! A bichord begins where the class changes or a mark stands. M-1 (an interpreter) has no agent yet; it would be
//! PHYSICAL notes around one BOTH.
//!
//! ```text
//! line      innermost first:   leaf .. task function   TASK   creator's frames   scheduler's frames   THREAD
//!                              BOTH                    MARK   LOGICAL            PHYSICAL             MARK
//! ```
//! The line remembers the nodes of the last sample, like `sampler::Path`, since most of a path stays the same.

use preload::arena::Arena;
use sampler::tree::{NodeId, ROOT, Tree};
use sampler::unwind::Key;
use wire::idle::{METRICS, NO_SERIAL, chord};

/// Longest path kept; the outermost notes of longer ones are dropped and counted.
pub const DEPTH: usize = 1024;

const PC_BITS: u32 = 47;
const PC: u64 = (1 << PC_BITS) - 1;
const CHORD_SHIFT: u32 = 60;
const MARK_SHIFT: u32 = 48;

/// The note of a frame.
#[inline]
pub fn frame(key: Key, class: u64) -> u64 {
    let serial = u64::from(key.serial().min(NO_SERIAL));
    key.pc() & PC | serial << PC_BITS | class << CHORD_SHIFT | key.0 & Key::EXACT
}

/// A mark.
#[inline]
pub fn mark(what: u64, value: u64) -> u64 {
    value & ((1 << MARK_SHIFT) - 1) | what << MARK_SHIFT | chord::MARK << CHORD_SHIFT
}

/// The notes of one path, and the nodes of the one before. Large: lives in the thread's slot.
#[derive(Debug)]
pub struct Line {
    notes: [u64; DEPTH],
    len: usize,
    outer: [u64; DEPTH],
    outer_len: usize,
    last: [(u64, NodeId); DEPTH],
    last_len: usize,
    /// Notes of the last line, the outermost ones, that stand for those still missing here.
    shared: usize,
}

impl Line {
    /// An empty line.
    pub const fn new() -> Self {
        Self {
            notes: [0; DEPTH],
            len: 0,
            outer: [0; DEPTH],
            outer_len: 0,
            last: [(0, ROOT); DEPTH],
            last_len: 0,
            shared: 0,
        }
    }

    /// Forgets the last line's nodes as well.
    pub fn forget(&mut self) {
        self.clear();
        self.last_len = 0;
    }

    /// Starts anew.
    pub fn clear(&mut self) {
        self.len = 0;
        self.outer_len = 0;
        self.shared = 0;
    }

    /// Notes of the last line that have nodes.
    pub fn last_len(&self) -> usize {
        self.last_len
    }

    /// The outermost notes are those of the last line, as many as said, which are not to be pushed again.
    pub fn share(&mut self, notes: usize) {
        self.shared = notes.min(self.last_len);
    }

    /// Adds the next outer note; `false` when there is no room.
    #[inline]
    pub fn push(&mut self, note: u64) -> bool {
        match self.notes.get_mut(self.len) {
            Some(place) => {
                *place = note;
                self.len += 1;
                true
            }
            None => false,
        }
    }

    /// Sets a note aside that belongs outside of those still to be pushed.
    #[inline]
    pub fn push_outer(&mut self, note: u64) -> bool {
        match self.outer.get_mut(self.outer_len) {
            Some(place) => {
                *place = note;
                self.outer_len += 1;
                true
            }
            None => false,
        }
    }

    /// Adds what was set aside.
    pub fn join_outer(&mut self) {
        for i in 0..self.outer_len {
            let Some(&note) = self.outer.get(i) else { break };
            self.push(note);
        }
        self.outer_len = 0;
    }

    /// Notes so far.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Goes back to `len` notes.
    pub fn cut(&mut self, len: usize) {
        self.len = self.len.min(len);
    }

    /// The node that the notes lead to, made if need be; the last one that exists when memory has run out.
    pub fn node(&mut self, tree: &Tree<METRICS>, arena: &Arena) -> NodeId {
        let first = core::mem::take(&mut self.shared);
        let mut at = first.checked_sub(1).and_then(|i| self.last.get(i)).map_or(ROOT, |last| last.1);
        let mut shared = self.last_len;
        self.last_len = first;
        let outermost_first = self.notes.iter().take(self.len).rev();
        for (i, (&key, last)) in (first..).zip(outermost_first.zip(self.last.iter_mut().skip(first))) {
            if i < shared && last.0 == key {
                at = last.1;
            } else {
                shared = 0;
                match tree.child(arena, at, key) {
                    Some(next) => at = next,
                    None => return at,
                }
                *last = (key, at);
            }
            self.last_len = i + 1;
        }
        at
    }
}

impl Default for Line {
    fn default() -> Self {
        Self::new()
    }
}
