//! What functions are called: linker names made readable.
//!
//! Compilers decorate names in layers: a language's mangling (`_ZN…`, `_R…`), then suffixes for what an
//! optimizer made of the function (`.constprop.0`, `.cold`, `.llvm.8123`), then a version (`@@GLIBC_2.14`).
//! [`Name`] keeps the linker's spelling and peels those layers for the readable one. Rust's legacy hash is
//! dropped; instances of a generic then share a name and are told apart by address, as they should be.
//!
//! Demangling foreign text must end: results are cut off at [`DEMANGLED_BYTES_MAX`], since a short C++ name
//! can expand without bound.

use std::fmt::Write;
use std::sync::Arc;

/// Longer results are given up, and the mangled name shown.
const DEMANGLED_BYTES_MAX: usize = 1 << 16;

/// What optimizers append when they change or split a function that is still the same one to its author.
/// `.part.0` is not among them: it is a part that the rest calls, with activations and costs of its own.
const CLONE_SUFFIXES: [&str; 9] =
    ["constprop", "isra", "cold", "lto_priv", "llvm", "localalias", "clone", "warm", "hot"];

/// A function's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Name {
    readable: Arc<str>,
    mangled: Arc<str>,
}

impl Name {
    /// From the linker's spelling.
    pub fn from_mangled(mangled: &str) -> Name {
        let (symbol, plt) = match mangled.strip_suffix("@plt") {
            Some(symbol) => (symbol, "@plt"),
            None => (mangled, ""),
        };
        let base = strip_clone_suffixes(strip_version(symbol));
        let mangled: Arc<str> = mangled.into();
        let readable = match demangle(base) {
            Some(text) => (text + plt).into(),
            None if base.len() + plt.len() == mangled.len() => mangled.clone(),
            None => format!("{base}{plt}").into(),
        };
        Name { readable, mangled }
    }

    /// A name that no linker gave.
    pub fn plain(name: &str) -> Name {
        let name: Arc<str> = name.into();
        Name { readable: name.clone(), mangled: name }
    }

    /// For people: demangled, without hash and clone suffixes, with template arguments and parameters.
    pub fn readable(&self) -> &str {
        &self.readable
    }

    /// As the linker or the debug information spells it; equal to [`Self::readable`] if there was nothing to
    /// demangle.
    pub fn mangled(&self) -> &str {
        &self.mangled
    }

    /// The readable name in fewer characters.
    pub fn short(&self) -> String {
        crate::shorten::shorten(&self.readable, crate::shorten::Short::default())
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.readable)
    }
}

/// Whether the symbol is the unlikely part of a function that the compiler moved away from the rest.
pub(crate) fn cold_part_of(mangled: &str) -> Option<&str> {
    let base = mangled.strip_suffix(".cold").or_else(|| {
        let (base, number) = mangled.rsplit_once('.')?;
        let digits = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        base.strip_suffix(".cold").filter(|_| digits)
    });
    base.filter(|b| !b.is_empty())
}

fn strip_version(symbol: &str) -> &str {
    match symbol.find('@') {
        Some(at) if at > 0 => &symbol[..at],
        _ => symbol,
    }
}

fn strip_clone_suffixes(symbol: &str) -> &str {
    let mut base = symbol;
    while let Some((head, tail)) = base.rsplit_once('.') {
        let stripped = if CLONE_SUFFIXES.contains(&tail) {
            head
        } else if !tail.is_empty() && tail.bytes().all(|b| b.is_ascii_hexdigit()) {
            match head.rsplit_once('.') {
                Some((inner, word)) if CLONE_SUFFIXES.contains(&word) => inner,
                _ => break,
            }
        } else {
            break;
        };
        if stripped.is_empty() {
            break;
        }
        base = stripped;
    }
    base
}

fn demangle(symbol: &str) -> Option<String> {
    if symbol.starts_with("_R") || has_rust_hash(symbol) {
        let parsed = rustc_demangle::try_demangle(symbol).ok()?;
        let mut out = Bounded(String::new());
        return write!(out, "{parsed:#}").ok().map(|()| out.0);
    }
    if !symbol.starts_with("_Z") && !symbol.starts_with("__Z") {
        return None;
    }
    demangle_cpp(symbol).or_else(|| {
        // GCC names the abstract constructor and destructor C4 and D4 in DWARF only.
        let concrete = symbol.replacen("C4E", "C1E", 1).replacen("D4E", "D1E", 1);
        if concrete == symbol { None } else { demangle_cpp(&concrete) }
    })
}

fn demangle_cpp(symbol: &str) -> Option<String> {
    let parsed = cpp_demangle::Symbol::new(symbol).ok()?;
    let mut out = Bounded(String::new());
    let options = cpp_demangle::DemangleOptions::new().no_return_type();
    parsed.structured_demangle(&mut out, &options).ok()?;
    Some(out.0)
}

/// Legacy Rust mangling looks like C++ but for its last path element, `h` and 16 hexadecimal digits.
fn has_rust_hash(symbol: &str) -> bool {
    let hash = symbol.strip_prefix("_ZN").and_then(|s| s.strip_suffix('E')).and_then(|s| {
        let start = s.len().checked_sub(19)?;
        s.get(start..)?.strip_prefix("17h")
    });
    hash.is_some_and(|h| h.bytes().all(|b| b.is_ascii_hexdigit()))
}

struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, s: &str) -> std::fmt::Result {
        if self.0.len() + s.len() > DEMANGLED_BYTES_MAX {
            return Err(std::fmt::Error);
        }
        self.0.push_str(s);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readable(mangled: &str) -> String {
        Name::from_mangled(mangled).readable().to_owned()
    }

    #[test]
    fn layers_peel_off() {
        for (mangled, want) in [
            ("main", "main"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("puts@plt", "puts@plt"),
            (
                "_ZSt4endlIcSt11char_traitsIcEERSt13basic_ostreamIT_T0_ES6_@plt",
                "std::endl<char, std::char_traits<char> >(std::basic_ostream<char, std::char_traits<char> >&)@plt",
            ),
            ("work.constprop.0", "work"),
            ("work.constprop.0.isra.1", "work"),
            ("work.part.0", "work.part.0"),
            ("_ZN3foo3barEi.cold", "foo::bar(int)"),
            ("_ZN3foo3barEi.llvm.1234ABCD", "foo::bar(int)"),
            ("_ZN4core3fmt5Write9write_str17h0123456789abcdefE", "core::fmt::Write::write_str"),
            ("_ZN4core3fmt5Write9write_str17h0123456789abcdefE.llvm.99", "core::fmt::Write::write_str"),
            ("_RNvCs1234_7mycrate4main", "mycrate::main"),
            ("_RNvMNtCs1_3foo3barNtB2_3Baz3new", "<foo::bar::Baz>::new"),
            ("_ZN3FooC4Ev", "Foo::Foo()"),
            ("_ZN3FooD4Ev", "Foo::~Foo()"),
            ("_Znwm", "operator new(unsigned long)"),
            ("_Z", "_Z"),
            ("_R", "_R"),
            ("", ""),
            (".cold", ".cold"),
            ("a.b", "a.b"),
        ] {
            assert_eq!(readable(mangled), want, "{mangled}");
        }
    }

    #[test]
    fn cold_parts() {
        assert_eq!(cold_part_of("f.cold"), Some("f"));
        assert_eq!(cold_part_of("f.cold.3"), Some("f"));
        assert_eq!(cold_part_of("f"), None);
        assert_eq!(cold_part_of(".cold"), None);
    }

    /// Each S_ doubles the text: 30 levels would print a gigabyte.
    #[test]
    fn expansion_is_bounded() {
        let mut symbol = String::from("_Z1fI1AIiE");
        for i in 0..40 {
            symbol += &format!("1B{}IS{}_S{}_E", "I", i, i);
        }
        symbol += "Evv";
        assert!(readable(&symbol).len() <= DEMANGLED_BYTES_MAX);
    }
}
