//! A path of dependencies through a task: its length, the call sites on it, and more once it is long.

use crate::detail::Detail;
use crate::prof::Prof;
use crate::record::{Measure, Record};
use crate::{Cost, Site};
use alloc::boxed::Box;

/// How large the computation is, as far as that decides how to store things.
#[derive(Debug, Clone, Copy)]
pub struct Scale {
    /// Call sites known so far.
    pub sites: usize,
    /// Paths of this length get a [`Detail`]; must be much more than the cost of `sites` additions.
    pub heavy: Cost,
}

/// A path. The strands of the task that it runs through count as `local` until [`Line::close`] puts them, with
/// the task's record, into the profile.
#[derive(Debug, Clone, Default)]
pub struct Line {
    span: Cost,
    local: Cost,
    /// The part of `local` that the detail does not cover.
    loose: Cost,
    prof: Prof,
    detail: Option<Box<Detail>>,
}

impl Line {
    /// Its length.
    pub fn span(&self) -> Cost {
        self.span
    }

    /// Nothing happened on it.
    pub fn is_empty(&self) -> bool {
        self.span == 0 && self.prof.is_empty()
    }

    /// The part of it that is the task's own strands.
    pub fn local(&self) -> Cost {
        self.local
    }

    /// The profile of the call sites on it.
    pub fn prof(&self) -> &Prof {
        &self.prof
    }

    /// The task executes.
    #[inline]
    pub fn strand(&mut self, cost: Cost) {
        self.span += cost;
        self.local += cost;
        self.loose += cost;
    }

    /// Adds a record without length: what invocations that lie on this path measured.
    pub fn note(&mut self, site: Site, record: &Record, scale: Scale) {
        self.prof.update(site, record, scale);
    }

    /// The task `own` ends: its strands become part of the profile.
    #[inline]
    pub fn close(&mut self, own: Site, record: &Record, scale: Scale) {
        if self.detail.is_some() || self.span >= scale.heavy {
            self.detailed(own, scale);
        }
        self.prof.update(own, record, scale);
        self.local = 0;
        self.loose = 0;
    }

    /// The strands so far become part of the profile although their invocation goes on elsewhere.
    pub fn seal(&mut self, own: Site, scale: Scale) {
        let local = Measure { count: 0, work: self.local, span: self.local };
        self.close(own, &Record { local, ..Record::default() }, scale);
    }

    /// The detail, made if there is none.
    pub fn detailed(&mut self, own: Site, scale: Scale) -> &mut Detail {
        match &mut self.detail {
            Some(detail) => detail.strand(own, self.loose),
            none => {
                let records = self.prof.records(scale.sites);
                *none = Some(Box::new(Detail::new(self.span, &records, own, self.local)));
            }
        }
        self.loose = 0;
        self.detail.get_or_insert_default()
    }

    /// Adds a path at the end. Strands of the other one that are local stay local here, so it must be either
    /// closed or of the same task, which is `own`.
    pub fn append(&mut self, mut other: Line, own: Site, scale: Scale) {
        if self.detail.is_some() || other.detail.is_some() {
            let theirs = core::mem::take(other.detailed(own, scale));
            self.detailed(own, scale).append(&theirs);
        } else {
            self.loose += other.loose;
        }
        self.span += other.span;
        self.local += other.local;
        self.prof.union(core::mem::take(&mut other.prof), scale);
    }

    /// The longer of two paths from the same start to the same end; `self` when they are equal.
    pub fn max(mut self, mut other: Line, own: Site, scale: Scale) -> Line {
        if other.span > self.span {
            core::mem::swap(&mut self, &mut other);
        }
        if self.detail.is_some() || self.span >= scale.heavy {
            let theirs = core::mem::take(other.detailed(own, scale));
            self.detailed(own, scale).rival(&theirs, None);
        }
        self
    }

    /// The detail, if the path is heavy.
    pub fn detail(&self) -> Option<&Detail> {
        self.detail.as_deref()
    }
}
