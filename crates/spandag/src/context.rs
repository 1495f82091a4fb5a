//! Which call sites and functions are on the logical stack, as a small number that is passed on by value.
//!
//! Top-call-site and top-caller measurements need to know, at an invocation, whether the same site (or another
//! site of the same function) is already active among its ancestors. With work stealing, ancestors are spread
//! over threads, so there is no per-site counter to look at. A [`Context`] is the pair of sets (active sites,
//! functions with an active site); equal sets have equal numbers; entering a site that is in the set changes
//! nothing, so recursion of any depth has finitely many contexts and entering is one lookup.

use crate::{Func, Site};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// A set of active sites and functions.
pub type Context = u32;
/// More sets than this are not kept apart; an invocation in such a program counts as nested.
const CONTEXTS_MAX: usize = 1 << 18;

/// What happens when a site is invoked in a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The context inside the invocation.
    pub context: Context,
    /// No other invocation of this site is active.
    pub top_site: bool,
    /// No other invocation from this function is active.
    pub top_caller: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Active {
    sites: Vec<Site>,
    funcs: Vec<Func>,
}

/// All contexts seen, and the way from one to the next.
#[derive(Debug)]
pub struct Contexts {
    active: Vec<Active>,
    numbers: BTreeMap<Active, Context>,
    entries: BTreeMap<(Context, Site), Entry>,
}

impl Default for Contexts {
    fn default() -> Self {
        let nothing = Active { sites: Vec::new(), funcs: Vec::new() };
        Self {
            active: Vec::from([nothing.clone()]),
            numbers: BTreeMap::from([(nothing, 0)]),
            entries: BTreeMap::new(),
        }
    }
}

impl Contexts {
    /// The context in which nothing is active.
    pub const EMPTY: Context = 0;

    /// Invokes `site`, which lies in `func`.
    pub fn enter(&mut self, context: Context, site: Site, func: Func) -> Entry {
        if let Some(&known) = self.entries.get(&(context, site)) {
            return known;
        }
        let mut inside = self.active[context as usize].clone();
        let top_site = insert(&mut inside.sites, site);
        let top_caller = insert(&mut inside.funcs, func);
        let entry = match self.numbers.get(&inside) {
            Some(&context) => Entry { context, top_site, top_caller },
            None if self.active.len() >= CONTEXTS_MAX => {
                Entry { context, top_site: false, top_caller: false }
            }
            None => {
                let number = self.active.len() as Context;
                self.active.push(inside.clone());
                self.numbers.insert(inside, number);
                Entry { context: number, top_site, top_caller }
            }
        };
        self.entries.insert((context, site), entry);
        entry
    }
}

/// Whether it was not in the set.
fn insert(set: &mut Vec<u32>, item: u32) -> bool {
    match set.binary_search(&item) {
        Ok(_) => false,
        Err(at) => {
            set.insert(at, item);
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recursion_comes_back_to_the_same_context() {
        let mut c = Contexts::default();
        let a = c.enter(Contexts::EMPTY, 1, 10);
        assert!(a.top_site && a.top_caller);
        let b = c.enter(a.context, 2, 10);
        assert!(b.top_site && !b.top_caller, "another site of the same function");
        let mut inner = b.context;
        for site in [1, 2, 2, 1] {
            let again = c.enter(inner, site, 10);
            assert!(!again.top_site && !again.top_caller);
            inner = again.context;
        }
        assert_eq!(inner, b.context);
        assert_eq!(c.enter(Contexts::EMPTY, 1, 10), a);
    }
}
