//! What changed between two runs of counts, function by function.
//!
//! Counts are exact, so every difference is one: nothing is judged to be noise. Functions are the same when object
//! file name and linker name are, wherever they lie: the two runs may be of different builds.

use std::collections::BTreeMap;

use profile::{Count, Function};

/// A function whose counts differ.
#[derive(Debug, Clone, Copy)]
pub struct FunctionChange<'a> {
    /// Before; `None` when it is new.
    pub old: Option<&'a Function>,
    /// After; `None` when it is gone.
    pub new: Option<&'a Function>,
}

impl<'a> FunctionChange<'a> {
    /// The later of the two.
    pub fn function(&self) -> &'a Function {
        self.new.or(self.old).expect("a change has a side")
    }

    /// By how much its own instructions changed.
    pub fn self_delta(&self) -> i128 {
        let own = |f: Option<&Function>| f.map_or(0, |f| i128::from(f.instructions_self));
        own(self.new) - own(self.old)
    }
}

/// The functions whose counts differ, those that changed most first.
pub fn diff<'a>(old: &'a Count, new: &'a Count) -> Vec<FunctionChange<'a>> {
    let mut sides: BTreeMap<(&str, &str, usize), FunctionChange<'a>> = BTreeMap::new();
    // Several functions of one name (statics of different files) are paired in order of address.
    let keyed = |functions: &'a [Function]| {
        let mut seen: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        functions.iter().map(move |f| {
            let object = f.object.rsplit('/').next().unwrap_or_default();
            let nth = seen.entry((object, &f.mangled)).or_default();
            *nth += 1;
            ((object, f.mangled.as_str(), *nth), f)
        })
    };
    for (key, f) in keyed(&old.functions) {
        sides.insert(key, FunctionChange { old: Some(f), new: None });
    }
    for (key, f) in keyed(&new.functions) {
        sides.entry(key).or_insert(FunctionChange { old: None, new: None }).new = Some(f);
    }
    let counts = |f: &Function| (f.calls, f.instructions_self, f.instructions_total);
    let mut changes: Vec<FunctionChange<'a>> =
        sides.into_values().filter(|c| c.old.map(counts) != c.new.map(counts)).collect();
    changes.sort_by_key(|c| std::cmp::Reverse(c.self_delta().unsigned_abs()));
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(functions: &[(&str, u64)]) -> Count {
        let functions = functions.iter().map(|&(name, own)| Function {
            name: name.into(),
            mangled: name.into(),
            object: "/bin/p".into(),
            instructions_self: own,
            ..Function::default()
        });
        Count { functions: functions.collect(), ..Count::default() }
    }

    #[test]
    fn what_differs_is_listed_and_the_largest_comes_first() {
        let (old, new) =
            (count(&[("a", 5), ("b", 9), ("gone", 1)]), count(&[("a", 5), ("b", 4), ("new", 70)]));
        let changes = diff(&old, &new);
        let seen: Vec<_> = changes.iter().map(|c| (c.function().name.as_str(), c.self_delta())).collect();
        assert_eq!(seen, [("new", 70), ("b", -5), ("gone", -1)]);
        assert!(diff(&old, &old).is_empty());
    }

    #[test]
    fn functions_of_one_name_are_paired_in_order() {
        let (old, new) = (count(&[("f", 5), ("f", 9)]), count(&[("f", 5), ("f", 8)]));
        let changes = diff(&old, &new);
        assert_eq!(changes.iter().map(FunctionChange::self_delta).collect::<Vec<_>>(), [-1]);
    }
}
