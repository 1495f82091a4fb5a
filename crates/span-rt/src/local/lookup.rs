//! What a thread has looked up before: sites, what it means to invoke them, and forks.

use super::{ENTRY_SLOTS, FORK_SLOTS, Local, SITE_SLOTS};
use crate::sites;
use core::cell::Cell;
use spandag::{Context, Entry, Site};

/// A fork of two that was looked up: what was forked, in which context, and what that means for the two sides.
pub(super) struct Fork {
    place: Cell<usize>,
    closure: Cell<usize>,
    context: Cell<Context>,
    sides: Cell<[(Site, Entry); 2]>,
}

impl Fork {
    pub(super) const fn none() -> Fork {
        Fork {
            place: Cell::new(0),
            closure: Cell::new(0),
            context: Cell::new(0),
            sides: Cell::new([(0, Entry { context: 0, top_site: false, top_caller: false }); 2]),
        }
    }
}

impl Local {
    /// What happens when `site` is invoked in `context`.
    #[inline]
    pub fn enter(&self, context: Context, site: Site) -> Entry {
        let key = u64::from(context) << 32 | u64::from(site);
        let slot = &self.entries[(site as usize ^ (context as usize).wrapping_mul(7)) % ENTRY_SLOTS];
        let (known, entry) = slot.get();
        if known == key {
            return entry;
        }
        let entry = sites::enter(context, site);
        slot.set((key, entry));
        entry
    }

    /// The site that was looked up under `key`, or what `find` says.
    #[inline]
    pub fn site(&self, key: (usize, usize), find: impl FnOnce() -> Site) -> Site {
        let slot = &self.known[(key.0 >> 3 ^ key.1 ^ key.1 >> 6) % SITE_SLOTS];
        let (known, site) = slot.get();
        if known == key {
            return site;
        }
        let site = find();
        slot.set((key, site));
        site
    }

    /// The two sides of a fork of `kind` in `context`, looked up before or found.
    #[inline]
    pub fn fork(
        &self,
        kind: (usize, usize),
        context: Context,
        find: impl FnOnce() -> [(Site, Entry); 2],
    ) -> [(Site, Entry); 2] {
        let slot = &self.forks[(kind.0 >> 3 ^ kind.1 ^ (context as usize).wrapping_mul(7)) % FORK_SLOTS];
        if (slot.place.get(), slot.closure.get()) == kind && slot.context.get() == context {
            return slot.sides.get();
        }
        let sides = find();
        slot.place.set(kind.0);
        slot.closure.set(kind.1);
        slot.context.set(context);
        slot.sides.set(sides);
        sides
    }
}
