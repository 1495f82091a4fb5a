//! A task that runs, and what its thread needs to know of it.

use super::follow;
use crate::calls::Suspended;
use crate::repeat;
use spandag::Arena;
use spandag::task::{Opened, Task};

/// A task and what its thread needs to know of it.
pub struct Running {
    /// The task.
    pub task: Task,
    /// Stack address above which frames belong to other tasks.
    pub base: usize,
    /// What kind of operation it belongs to: tasks of one kind are pieces of one operation.
    pub kind: (usize, usize),
    /// Calls in which it forks are followed.
    pub is_followed: bool,
    /// Something is not waited for outside of the group of tasks that it is in.
    pub is_behind: bool,
    /// The tasks around this one that wait for a call which forks, the outermost first. Then
    /// `task` is the innermost call's.
    pub callers: Option<Box<Vec<Suspended>>>,
    /// The scope that it has spawned into and not waited for, where who spawns may return before.
    pub opened: Option<Box<Opened>>,
}

impl Running {
    /// A task that runs below `base`.
    #[inline(always)]
    pub fn new(task: Task, base: usize, kind: (usize, usize)) -> Running {
        Running { task, base, kind, is_followed: false, is_behind: false, callers: None, opened: None }
    }

    /// The same, and calls in which it forks are invocations of their own.
    pub fn followed(task: Task, base: usize) -> Running {
        Running { is_followed: follow::is_on(), ..Running::new(task, base, (0, 0)) }
    }

    /// Calls that it makes may return before what it has spawned is waited for.
    pub(super) fn has_spawned(&self) -> bool {
        self.opened.is_some() || self.is_behind
    }

    /// It is given up, on the thread that it is on.
    pub fn lose(&mut self, arena: &mut Arena) {
        self.task.lose(arena);
        // From the innermost.
        for caller in self.callers.iter_mut().flat_map(|c| c.iter_mut().rev()) {
            caller.task.lose(arena);
        }
    }

    /// Whether a fork of `kind` is a piece of an operation that splits itself.
    #[inline]
    pub fn is_piece_of(&self, kind: (usize, usize)) -> bool {
        self.kind == kind && self.callers.as_ref().is_none_or(|c| c.is_empty())
    }

    /// The way of the task on `side` of a fork that this one makes now: its name in other runs.
    #[inline]
    pub fn way_of_child(&self, side: u64) -> u64 {
        if repeat::is_on() { repeat::way(self.task.way, self.task.strands, side) } else { 0 }
    }

    #[cold]
    pub(super) fn repeated(&mut self, cost: u64) -> u64 {
        self.task.strands += 1;
        if self.task.way == 0 {
            return cost; // what it does is not the same in every run
        }
        repeat::strand(repeat::way(self.task.way, self.task.strands, 2), cost)
    }
}
