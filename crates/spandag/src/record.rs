//! What is known of one call site: three measurements, each right for recursion in its own way.
//!
//! - `site` adds invocations that are not nested in another invocation of the same call site;
//! - `caller` adds invocations from an instance of the calling function that is not nested in another one;
//! - `local` adds all invocations, each without what it called or spawned.
//!
//! Plain sums: the order of additions never matters.

use crate::Cost;
use core::ops::AddAssign;

/// Sums over a set of invocations.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Measure {
    /// How many.
    pub count: u64,
    /// Their work.
    pub work: Cost,
    /// Their spans, added up.
    pub span: Cost,
}

impl AddAssign for Measure {
    #[inline]
    fn add_assign(&mut self, m: Measure) {
        self.count += m.count;
        self.work += m.work;
        self.span += m.span;
    }
}

/// The measurements of one call site.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Record {
    /// Top-call-site invocations.
    pub site: Measure,
    /// Top-caller invocations.
    pub caller: Measure,
    /// All invocations, own strands alone.
    pub local: Measure,
}

impl Record {
    /// Nothing measured.
    pub fn is_empty(&self) -> bool {
        *self == Record::default()
    }
}

impl AddAssign<&Record> for Record {
    #[inline]
    fn add_assign(&mut self, r: &Record) {
        self.site += r.site;
        self.caller += r.caller;
        self.local += r.local;
    }
}
