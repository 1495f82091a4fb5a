//! Long names in few characters, for tables and graphs.
//!
//! What makes names long is what the compiler added: template and generic arguments, parameter lists, the
//! full path. [`shorten`] drops these and keeps what tells functions apart: the last elements of the path,
//! the type and trait of a method, closures.

/// What to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Short {
    /// Keep template and generic arguments.
    pub generics: bool,
    /// Keep parameter lists.
    pub parameters: bool,
    /// How many path elements to keep at the end; 0 keeps all.
    pub path_elements: usize,
}

impl Default for Short {
    fn default() -> Self {
        Short { generics: false, parameters: false, path_elements: 2 }
    }
}

/// A shorter name, never an empty one unless `name` is.
///
/// ```
/// use symbols::shorten::{shorten, Short};
/// let short = |name| shorten(name, Short::default());
/// assert_eq!(short("std::vec::Vec<T,A>::push"), "Vec::push");
/// assert_eq!(short("<alloc::vec::Vec<T> as core::ops::Drop>::drop"), "<Vec as Drop>::drop");
/// assert_eq!(short("foo::bar<int, std::pair<int, int> >(int, char const*)"), "foo::bar");
/// ```
pub fn shorten(name: &str, how: Short) -> String {
    let short = rest(name, how, 0);
    if short.is_empty() { name.to_owned() } else { short }
}

/// Brackets nest at most this deep in names that we shorten; deeper ones stay as they are.
const DEPTH_MAX: usize = 64;

fn rest(name: &str, how: Short, depth: usize) -> String {
    if depth > DEPTH_MAX {
        return name.to_owned();
    }
    let mut elements: Vec<String> = vec![String::new()];
    let mut chars = name;
    while let Some(c) = chars.chars().next() {
        let last = elements.last_mut().expect("never empty");
        if let Some(operator) = operator_at(chars, last) {
            last.push_str(operator);
            chars = &chars[operator.len()..];
        } else if c == '<' {
            let (inner, after) = split_bracket(chars, '<', '>');
            if last.is_empty() {
                // `<Type as Trait>::method`: the path of a qualified Rust type, each side shortened.
                last.push_str(&qualified(inner, how, depth));
            } else if how.generics {
                last.push_str(&chars[..chars.len() - after.len()]);
            }
            chars = after;
        } else if c == '(' {
            let (inner, after) = split_bracket(chars, '(', ')');
            if last.is_empty() && inner == "anonymous namespace" {
                last.push_str("(anonymous namespace)");
            } else if last.is_empty() || how.parameters {
                last.push_str(&chars[..chars.len() - after.len()]);
            }
            chars = after;
            if !how.parameters {
                chars = chars.strip_prefix(" const").unwrap_or(chars);
            }
        } else if c == '{' {
            let (_, after) = split_bracket(chars, '{', '}');
            last.push_str(&chars[..chars.len() - after.len()]);
            chars = after;
        } else if let Some(after) = chars.strip_prefix("::") {
            // A turbofish (`f::<T>`) adds no element.
            if !after.starts_with('<') || last.is_empty() {
                elements.push(String::new());
            } else if how.generics {
                last.push_str("::");
            }
            chars = after;
        } else {
            last.push(c);
            chars = &chars[c.len_utf8()..];
        }
    }
    let closures = elements.iter().rev().take_while(|e| e.starts_with('{')).count();
    let keep = if how.path_elements == 0 { elements.len() } else { how.path_elements + closures };
    let skip = elements.len().saturating_sub(keep);
    elements[skip..].join("::")
}

fn qualified(inner: &str, how: Short, depth: usize) -> String {
    let last = Short { path_elements: usize::from(how.path_elements > 0), ..how };
    match inner.split_once(" as ") {
        // Only when the ` as ` is this bracket's own.
        Some((ty, tr)) if balanced(ty) => {
            format!("<{} as {}>", rest(ty, last, depth + 1), rest(tr, last, depth + 1))
        }
        _ => rest(inner, last, depth + 1),
    }
}

fn balanced(text: &str) -> bool {
    text.matches('<').count() == text.matches('>').count()
}

/// `operator<`, `operator()`, `operator->`: brackets that are part of the name.
fn operator_at<'n>(chars: &'n str, last: &str) -> Option<&'n str> {
    let name = chars.strip_prefix("operator")?;
    if last.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
        return None;
    }
    let symbol = ["<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "->", "()", "<", ">"]
        .into_iter()
        .find(|s| name.starts_with(s))?;
    Some(&chars[.."operator".len() + symbol.len()])
}

/// What is inside the bracket that `text` starts with, and what follows it.
fn split_bracket(text: &str, open: char, close: char) -> (&str, &str) {
    let mut depth = 0usize;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        if c == open {
            depth += 1;
        } else if c == close && before != '-' {
            depth -= 1;
            if depth == 0 {
                return (&text[open.len_utf8()..at], &text[at + close.len_utf8()..]);
            }
        }
        before = c;
    }
    (&text[open.len_utf8()..], "")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_names() {
        for (name, want) in [
            ("main", "main"),
            ("object+0x1234", "object+0x1234"),
            ("a::b::c::d", "c::d"),
            ("core::iter::Iterator::fold::{{closure}}", "Iterator::fold::{{closure}}"),
            ("core::ops::function::FnOnce::call_once{{vtable.shim}}", "FnOnce::call_once{{vtable.shim}}"),
            ("app::run::{closure#0}::{closure#1}", "app::run::{closure#0}::{closure#1}"),
            (
                "<rayon_core::job::StackJob<L,F,R> as rayon_core::job::Job>::execute",
                "<StackJob as Job>::execute",
            ),
            ("<app::Tree>::insert", "Tree::insert"),
            ("core::slice::sort::<u32, fn(&u32) -> bool>", "slice::sort"),
            ("std::operator<< <std::char_traits<char> >(std::ostream&, char const*)", "std::operator<< "),
            ("Foo::operator()(int) const", "Foo::operator()"),
            ("Foo::operator->()", "Foo::operator->"),
            ("(anonymous namespace)::helper(int)", "(anonymous namespace)::helper"),
            ("main::{lambda(int)#1}::operator()(int) const", "{lambda(int)#1}::operator()"),
            ("puts@plt", "puts@plt"),
            ("<", "<"),
            ("f(((", "f"),
        ] {
            assert_eq!(shorten(name, Short::default()), want, "{name}");
        }
    }

    #[test]
    fn options_keep_what_they_say() {
        let all = Short { generics: true, parameters: true, path_elements: 0 };
        let name = "ns::f<int, ns::g<char> >(int, char const*)";
        assert_eq!(shorten(name, all), name);
        assert_eq!(shorten("a::b::<u8>", all), "a::b::<u8>");
    }
}
