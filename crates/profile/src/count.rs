//! Exact counts: what a run executed, in all, by thread, and by function where that was asked for.
//!
//! Canonical form, which [`Count::validate`] checks and [`Count::normalize`] brings about: threads ascending in id,
//! functions strictly ordered by (object, address, name, linker name). Sums only ever add.

use crate::canon::Invalid;

/// The five sums that are counted; `docs/engine.md` says what each one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Completed instructions.
    pub instructions: u64,
    /// Executed control transfers: each ends a basic block.
    pub blocks: u64,
    /// Memory reads.
    pub loads: u64,
    /// Memory writes.
    pub stores: u64,
    /// Executed call instructions.
    pub calls: u64,
}

/// What one run executed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Count {
    /// Over all threads.
    pub total: Tally,
    /// Threads that ever ran; `by_thread` may list fewer.
    pub threads: u64,
    /// Threads with numbers of their own, ascending in id.
    pub by_thread: Vec<ThreadTally>,
    /// Functions, when they were asked for; their instructions add up to those of the run.
    pub functions: Vec<Function>,
}

/// What one thread executed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ThreadTally {
    /// The kernel's id of it.
    pub id: u64,
    /// What it executed.
    pub tally: Tally,
}

/// What was executed in and below one function.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Function {
    /// Readable (demangled) name.
    pub name: String,
    /// Linker name; equal to `name` when there is nothing to demangle.
    pub mangled: String,
    /// Path of the executable or library that holds it.
    pub object: String,
    /// Address inside the object; `None` when not known.
    pub address: Option<u64>,
    /// Source file, empty when not known.
    pub file: String,
    /// Source line, 0 when not known.
    pub line: u32,
    /// Times it was entered by a call.
    pub calls: u64,
    /// Instructions of its own.
    pub instructions_self: u64,
    /// Instructions of its own and of everything that it called; a recursion counts once.
    pub instructions_total: u64,
}

impl Tally {
    /// Adds `other`; sums stop at the largest number.
    pub fn absorb(&mut self, other: &Tally) {
        self.instructions = self.instructions.saturating_add(other.instructions);
        self.blocks = self.blocks.saturating_add(other.blocks);
        self.loads = self.loads.saturating_add(other.loads);
        self.stores = self.stores.saturating_add(other.stores);
        self.calls = self.calls.saturating_add(other.calls);
    }
}

impl Count {
    /// Checks the canonical form.
    pub fn validate(&self) -> Result<(), Invalid> {
        if !self.by_thread.is_sorted_by(|a, b| a.id < b.id) {
            return Err(Invalid::Whole("threads must be strictly ascending"));
        }
        if !self.functions.is_sorted_by(|a, b| a.order() < b.order()) {
            return Err(Invalid::Whole("functions must be strictly ordered by object, address and name"));
        }
        Ok(())
    }

    /// Brings the counts into canonical form: sorts, and adds what has the same identity.
    pub fn normalize(&mut self) {
        self.by_thread.sort_by_key(|t| t.id);
        self.by_thread.dedup_by(|later, kept| {
            let same = later.id == kept.id;
            if same {
                kept.tally.absorb(&later.tally);
            }
            same
        });
        self.functions.sort_by(|a, b| a.order().cmp(&b.order()));
        self.functions.dedup_by(|later, kept| {
            let same = later.order() == kept.order();
            if same {
                kept.calls = kept.calls.saturating_add(later.calls);
                kept.instructions_self = kept.instructions_self.saturating_add(later.instructions_self);
                kept.instructions_total = kept.instructions_total.saturating_add(later.instructions_total);
            }
            same
        });
    }

    /// Several runs of one build added up. Threads of different runs have nothing to do with each other, so they
    /// are no longer kept apart.
    pub fn combined<'a>(runs: impl IntoIterator<Item = &'a Count>) -> Count {
        let mut runs = runs.into_iter();
        let mut sum = runs.next().cloned().unwrap_or_default();
        for run in runs {
            sum.total.absorb(&run.total);
            sum.threads = sum.threads.saturating_add(run.threads);
            sum.by_thread.clear();
            sum.functions.extend(run.functions.iter().cloned());
        }
        sum.normalize();
        sum
    }
}

impl Function {
    fn order(&self) -> (&str, Option<u64>, &str, &str) {
        (&self.object, self.address, &self.name, &self.mangled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(name: &str, own: u64) -> Function {
        Function {
            name: name.into(),
            mangled: name.into(),
            calls: 1,
            instructions_self: own,
            instructions_total: own,
            ..Function::default()
        }
    }

    #[test]
    fn runs_add_up_whatever_their_order() {
        let a = Count { threads: 1, functions: vec![function("f", 3)], ..Count::default() };
        let b = Count {
            total: Tally { instructions: 5, ..Tally::default() },
            threads: 2,
            functions: vec![function("a", 1), function("f", 4)],
            ..Count::default()
        };
        let sum = Count::combined([&a, &b]);
        assert_eq!(sum, Count::combined([&b, &a]));
        assert_eq!(sum.validate(), Ok(()));
        assert_eq!((sum.threads, sum.total.instructions), (3, 5));
        let own: Vec<_> = sum.functions.iter().map(|f| (f.name.as_str(), f.instructions_self)).collect();
        assert_eq!(own, [("a", 1), ("f", 7)]);
    }

    #[test]
    fn disorder_is_invalid() {
        let two = Count { functions: vec![function("g", 1), function("f", 1)], ..Count::default() };
        assert!(two.validate().is_err());
        let twice = Count { by_thread: vec![ThreadTally::default(); 2], ..Count::default() };
        assert!(twice.validate().is_err());
    }
}
