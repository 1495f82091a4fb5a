//! Strands where only lengths are kept: [`Mode::Plain`](super::Mode::Plain).

use super::{HABITS, Local, Running};
use crate::share::Habit;

impl Local {
    /// As [`pause`](Self::pause), where only lengths are kept ([`Mode::Plain`]). The next strand that starts under the name
    /// `tag` on this thread starts where this one ended.
    #[inline(always)]
    pub fn pause_plain(&self, tag: usize, habit: Option<&Habit>) -> *mut Running {
        let current = self.current.get();
        if current.is_null() {
            return self.adopt();
        }
        self.tag.set(tag);
        let cost = self.cost_shared(habit, |habit| {
            let (cost, now) = self.clock.end(self.begun.get());
            self.begun.set(now);
            match habit {
                Some(habit) => self.sharing.read(cost, habit),
                None => self.sharing.settle(cost),
            }
        });
        // SAFETY: as in `pause`.
        unsafe { &mut *current }.task.stretch(cost);
        current
    }

    /// A strand of `running` starts, as said by [`pause_plain`](Self::pause_plain), or now.
    #[inline(always)]
    pub fn resume_plain(&self, running: *mut Running, tag: usize) {
        self.current.set(running);
        if self.tag.get() != tag {
            self.begin_anew();
        }
        self.tag.set(0);
    }

    /// What strands have been like at a place that forks, where only lengths are kept. Places may share them: then they
    /// are what both have.
    #[inline(always)]
    pub fn plain_habits(&self, place: usize) -> &[Habit; 3] {
        &self.habits[(place >> 3 ^ place >> 9) % HABITS]
    }

    /// Forks are counted without a look at call sites.
    #[inline(always)]
    pub fn count_plain(&self) {
        self.plain_forks.set(self.plain_forks.get() + 1);
    }
}
