//! Which call site an operation belongs to.
//!
//! A `join`, `scope` or `spawn` in the program's own code is known by `#[track_caller]` and the type of its
//! closure. Operations inside `rayon` itself (every parallel iterator) all come from the same few lines there, so
//! the stack tells whose they are; it is walked only where an operation starts: the tasks into which it splits
//! itself have the same kind (place and closure type) as their parent, and inherit its site.

use core::panic::Location;
use span_rt::Local;
use span_rt::local::{self, Place, Running};
use span_rt::sites::{self, Key};
use span_rt::stack::Trace;
use spandag::dump::{self, Kind};
use spandag::{Entry, Site};

/// The kind of an operation: where it was called and with what closure.
pub fn kind(at: &'static Location<'static>, closure: &'static str) -> (usize, usize) {
    (core::ptr::from_ref(at) as usize, closure.as_ptr() as usize)
}

/// The site of a closure handed over at `at`. `side` tells the two closures of a join apart.
#[inline]
pub fn find(
    here: &Local,
    parent: &Running,
    at: &'static Location<'static>,
    closure: &'static str,
    side: u8,
) -> Site {
    if local::is_whole() {
        return parent.task.site;
    }
    let kind = kind(at, closure);
    let at_user = here.site((kind.0, kind.1.wrapping_mul(8) + usize::from(side)), || {
        if inside_rayon(at.file()) { Site::MAX } else { in_source(at, closure, side) }
    });
    if at_user != Site::MAX {
        return at_user;
    }
    if parent.is_piece_of(kind) { parent.task.site } else { by_stack(here, parent, kind.1, closure) }
}

/// No kind: a task that is not a piece of an operation of rayon's.
pub const NO_KIND: (usize, usize) = (0, 0);

/// The two closures of a join, and the kind that they have. Inside rayon both are pieces of one operation.
#[inline]
pub fn find_both(
    here: &Local,
    parent: &Running,
    at: &'static Location<'static>,
    kind: (usize, usize),
    (a, b): (&'static str, &'static str),
) -> ([(Site, Entry); 2], (usize, usize)) {
    let context = parent.task.entry.context;
    if parent.is_piece_of(kind) || local::is_whole() {
        // A piece of an operation splits itself: its site is active already, so nothing changes.
        let entry = Entry { context, top_site: false, top_caller: false };
        return ([(parent.task.site, entry); 2], kind);
    }
    let sides = here.fork(kind, context, || in_context(here, parent, at, (a, b)));
    if sides[0].0 != Site::MAX {
        return (sides, NO_KIND);
    }
    let site = by_stack(here, parent, kind.1, a);
    ([(site, here.enter(context, site)); 2], kind)
}

/// Beside places, which are addresses: pieces of an operation, and operations.
const PIECE: usize = 1;
/// See [`PIECE`].
const OPERATION: usize = 2;

/// The same in [`Mode::Timed`](local::Mode::Timed), with what ended there on this thread, if it is what was looked up last.
#[inline(always)]
pub fn last_place(
    here: &Local,
    parent: &Running,
    kind: (usize, usize),
) -> Option<(&'static Place, (usize, usize))> {
    let context = parent.task.entry.context;
    if parent.kind == kind {
        return Some((here.last_place((PIECE, parent.task.site as usize, context))?, kind));
    }
    let place = here.last_place((kind.0, kind.1, context))?;
    (place.sides[0].site != Site::MAX).then_some((place, NO_KIND))
}

/// The same whatever it is.
#[inline(never)]
pub fn place(
    here: &Local,
    parent: &Running,
    at: &'static Location<'static>,
    kind: (usize, usize),
    closures: (&'static str, &'static str),
) -> (&'static Place, (usize, usize)) {
    let (site, context) = (parent.task.site, parent.task.entry.context);
    if parent.is_piece_of(kind) {
        // Pieces of an operation that splits itself: its site is active already, so nothing changes.
        let entry = Entry { context, top_site: false, top_caller: false };
        return (here.place((PIECE, site as usize, context), || [(site, entry); 2]), kind);
    }
    let place = here.place((kind.0, kind.1, context), || in_context(here, parent, at, closures));
    if place.sides[0].site != Site::MAX {
        return (place, NO_KIND);
    }
    // An operation of rayon's starts.
    let site = by_stack(here, parent, kind.1, closures.0);
    let place = here.place((OPERATION, site as usize, context), || [(site, here.enter(context, site)); 2]);
    here.begin_anew(); // the walk is ours
    (place, kind)
}

/// Two closures in the source, or no sites if that is rayon's.
fn in_context(
    here: &Local,
    parent: &Running,
    at: &'static Location<'static>,
    (a, b): (&'static str, &'static str),
) -> [(Site, Entry); 2] {
    if inside_rayon(at.file()) {
        return [(Site::MAX, parent.task.entry); 2];
    }
    [(1, a), (2, b)].map(|(side, closure)| {
        let site = in_source(at, closure, side);
        (site, here.enter(parent.task.entry.context, site))
    })
}

#[cold]
fn in_source(at: &'static Location<'static>, closure: &'static str, side: u8) -> Site {
    sites::site(Key::Source(at.file(), at.line(), at.column(), closure, side), || dump::Place {
        kind: Kind::Spawn,
        function: function_of(closure),
        callee: match side {
            1 => "first closure".into(),
            2 => "second closure".into(),
            _ => "closure".into(),
        },
        file: at.file().into(),
        line: at.line(),
        stack: Vec::new(),
    })
}

#[inline(never)]
fn by_stack(here: &Local, parent: &Running, type_key: usize, closure: &'static str) -> Site {
    let trace = Trace::up_to(parent.base);
    let hash = trace
        .frames()
        .iter()
        .fold(0usize, |h, &f| (h.rotate_left(5) ^ f).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    here.site((hash | 1, type_key.wrapping_mul(8) + 7), || {
        sites::site(Key::Stack(trace.frames().to_vec()), || dump::Place {
            kind: Kind::Loop,
            callee: closure.into(),
            stack: trace.frames().iter().map(|&f| f as u64).collect(),
            ..dump::Place::default()
        })
    })
}

/// `my::app::work::{{closure}}::{{closure}}` is in `my::app::work`.
fn function_of(closure: &str) -> String {
    closure.split("::{{closure}}").next().unwrap_or(closure).into()
}

/// Whether a source file belongs to rayon: `.../rayon-1.12.0/src/...`, and without a version (vendored, a checkout) where
/// the file has a name that rayon's have: somebody's own project may be called rayon too.
fn inside_rayon(file: &str) -> bool {
    const OWN: [&str; 12] = [
        "iter",
        "slice",
        "collections",
        "join",
        "scope",
        "spawn",
        "thread_pool",
        "broadcast",
        "registry.rs",
        "vec.rs",
        "range.rs",
        "str.rs",
    ];
    // From the end, where the answer is.
    let (mut next, mut second) = ("", "");
    file.rsplit('/').any(|part| {
        let found = part.strip_prefix("rayon").is_some_and(|rest| {
            let rest = rest.strip_prefix("-core").unwrap_or(rest);
            let versioned =
                rest.strip_prefix('-').is_some_and(|v| v.starts_with(|c: char| c.is_ascii_digit()));
            versioned || (rest.is_empty() && next == "src" && OWN.contains(&second))
        });
        (next, second) = (part, next);
        found
    })
}

/// Whether the caller is rayon itself.
pub fn is_rayon(at: &'static Location<'static>) -> bool {
    inside_rayon(at.file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_rayon_are_known() {
        for yes in [
            "/r/rayon-1.12.0/src/iter/plumbing/mod.rs",
            "vendor/rayon/src/vec.rs",
            "x/rayon-core-1.13.0/src/lib.rs",
        ] {
            assert!(inside_rayon(yes), "{yes}");
        }
        for no in [
            "src/main.rs",
            "/home/me/rayon/src/main.rs",
            "/home/me/rayon/src/bin/fib.rs",
            "/r/rayon-cond-0.4.0/src/lib.rs",
            "/home/crayon/src/a.rs",
            "/r/rayon_logs/src/x.rs",
        ] {
            assert!(!inside_rayon(no), "{no}");
        }
    }

    #[test]
    fn closures_tell_their_function() {
        assert_eq!(function_of("a::fib::{{closure}}::{{closure}}"), "a::fib");
    }
}
