//! The table of call sites, and contexts, shared by all threads.
//!
//! Sites are told apart by what identifies them in their model: a source location and the type of the closure, a
//! return address, a stack. Threads keep what they looked up in small caches of their own; this table is behind
//! a lock and only asked on a miss.

use spandag::dump::Place;
use spandag::{Context, Contexts, Entry, Func, Site};
use std::collections::HashMap;
use std::sync::{Mutex, OnceLock, PoisonError};

/// What tells one site from another.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// A place in the source: file, line, column, type of the closure, which of the two sides of a join.
    Source(&'static str, u32, u32, &'static str, u8),
    /// A stack of return addresses, for operations whose caller has no location.
    Stack(Vec<usize>),
    /// A call in the strands of a task of that site: its function, numbered from 1, and its place; (0, 0) is the strands
    /// themselves.
    Sampled(Site, (u64, u64)),
    /// A number that the model gives: an address, the index of a compiled-in table.
    Number(u64),
}

#[derive(Default)]
struct Table {
    sites: HashMap<Key, Site>,
    places: Vec<(Place, Func)>,
    funcs: HashMap<String, Func>,
    contexts: Contexts,
}

fn table() -> &'static Mutex<Table> {
    static TABLE: OnceLock<Mutex<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut table = Table::default();
        let place = Place { callee: "main".into(), ..Place::default() };
        table.places.push((place, Func::MAX));
        Mutex::new(table)
    })
}

/// Number of sites, readable without the lock.
pub static COUNT: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(1);

/// The site of `key`; `describe` is asked once.
pub fn site(key: Key, describe: impl FnOnce() -> Place) -> Site {
    let mut t = table().lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(&site) = t.sites.get(&key) {
        return site;
    }
    let place = describe();
    let site = t.places.len() as Site;
    let name = if place.function.is_empty() { format!("\0{site}") } else { place.function.clone() };
    let next = t.funcs.len() as Func;
    let func = *t.funcs.entry(name).or_insert(next);
    t.places.push((place, func));
    t.sites.insert(key, site);
    COUNT.store(t.places.len(), core::sync::atomic::Ordering::Relaxed);
    crate::local::rescale(t.places.len());
    site
}

/// Invokes `site` in `context`.
pub fn enter(context: Context, site: Site) -> Entry {
    let mut t = table().lock().unwrap_or_else(PoisonError::into_inner);
    let func = t.places[site as usize].1;
    t.contexts.enter(context, site, func)
}

/// The function that contains `site`.
pub fn func(site: Site) -> Func {
    let t = table().lock().unwrap_or_else(PoisonError::into_inner);
    t.places.get(site as usize).map_or(Func::MAX, |p| p.1)
}

/// The task of the whole program.
pub fn root() -> spandag::task::Task {
    let mut t = table().lock().unwrap_or_else(PoisonError::into_inner);
    spandag::task::Task::root(&mut t.contexts)
}

/// All sites.
pub fn places() -> Vec<Place> {
    let t = table().lock().unwrap_or_else(PoisonError::into_inner);
    t.places.iter().map(|p| p.0.clone()).collect()
}
