//! Distinct strings: columns hold positions in the list instead of the text.

use std::collections::HashMap;

/// Distinct strings in order of first use.
#[derive(Default)]
pub struct Strings<'a> {
    /// The strings.
    pub list: Vec<&'a str>,
    index: HashMap<&'a str, usize>,
}

impl<'a> Strings<'a> {
    /// The position of a string, which is added if it is new.
    pub fn add(&mut self, s: &'a str) -> usize {
        *self.index.entry(s).or_insert_with(|| {
            self.list.push(s);
            self.list.len() - 1
        })
    }
}
