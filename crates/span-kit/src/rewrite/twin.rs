//! Twins: functions of straight code a second time, for counting instructions.
//!
//! ```text
//! int f(int n) { … }      int f__farsight(int n);
//!                         int f(int n) { if (farsight_counting) return f__farsight(n); … }
//!                         int f__farsight(int n) { … }
//! ```
//! What a hook costs, in registers that the code around it must do without, cannot be counted and taken off. So where
//! instructions are counted another copy runs, which the compiler compiles as the serial elision: its hooks are assembler
//! code that takes no register and changes none, and whose addresses are known (`farsight/cilk_rt.h`). Twins call each other.

use super::{Rewriter, Token};

/// A function that is given a twin; pieces.
pub(super) struct Twin {
    /// The first of its definition.
    start: usize,
    /// Its name.
    name: usize,
    /// The braces around its body.
    open: usize,
    close: usize,
    /// The names of its parameters.
    parameters: Vec<String>,
}

/// The name of a function's twin.
pub(super) fn twin_of(name: &str) -> String {
    format!("{name}__farsight")
}

impl Rewriter<'_> {
    /// Finds the functions that can have twins. Those that keep variables from call to call cannot: there must be one of each.
    pub(super) fn find_twins(&mut self) {
        for open in 0..self.pieces.len() {
            if self.pieces[open].token != Token::Punctuation || self.pieces[open].text != "{" {
                continue;
            }
            let Some(name) = self.function_at(open).filter(|n| self.straight.contains(n) && n != "main")
            else {
                continue;
            };
            if let Some(twin) = self.twin_at(open) {
                self.twin_names.push(name);
                self.twins.push(twin);
            }
        }
    }

    fn twin_at(&self, open: usize) -> Option<Twin> {
        let close = self.closing(open)?;
        let last = self.previous(open).filter(|&i| self.pieces[i].text == ")")?;
        let first = self.opening(last)?;
        let name = self.previous(first)?;
        // Back to the end of what comes before, outside of it.
        let mut start = name;
        while let Some(i) = self.previous(start) {
            match self.pieces[i].text {
                ";" | "}" | "#" => break,
                ")" => start = self.opening(i)?,
                _ => start = i,
            }
        }
        let words = |from: usize, to: usize| {
            self.pieces[from..to].iter().filter(|p| p.token == Token::Word).map(|p| p.text)
        };
        let odd = ["constructor", "destructor", "ifunc", "alias", "__asm__", "asm", "typedef"];
        if words(start, open).any(|w| odd.contains(&w)) || words(open, close).any(|w| w == "static") {
            return None;
        }
        Some(Twin { start, name, open, close, parameters: self.parameters(first, last)? })
    }

    /// Names of the parameters between two parentheses, if they are simple.
    fn parameters(&self, open: usize, close: usize) -> Option<Vec<String>> {
        let (mut names, mut words, mut name, mut depth) = (Vec::new(), 0, "", 0);
        for i in open + 1..=close {
            let p = &self.pieces[i];
            match (p.token, p.text) {
                (Token::Punctuation, "," | ")") if depth == 0 => {
                    match (words, name) {
                        (0 | 1, "" | "void") if i == close && names.is_empty() => {}
                        (0 | 1, _) | (_, "") => return None,
                        _ => names.push(name.to_owned()),
                    }
                    (words, name) = (0, "");
                }
                (Token::Punctuation, "[") => depth += 1,
                (Token::Punctuation, "]") => depth -= 1,
                (Token::Punctuation, "(" | ".") => return None, // a function, an attribute, any number
                (Token::Word, word) if depth == 0 => (words, name) = (words + 1, word),
                _ => {}
            }
        }
        Some(names)
    }

    /// Puts the twins beside their functions. `self` has the functions with hooks in it, and is left so.
    pub(super) fn add_twins(&mut self) -> Result<(), super::CilkError> {
        if self.twins.is_empty() {
            return Ok(());
        }
        let n = self.pieces.len();
        let fresh = || (vec![String::new(); n], vec![None; n], vec![String::new(); n]);
        let (before, instead, after) = fresh();
        let hooked = (
            std::mem::replace(&mut self.before, before),
            std::mem::replace(&mut self.instead, instead),
            std::mem::replace(&mut self.after, after),
        );
        self.in_twins = true;
        self.run()?;
        self.in_twins = false;
        let twins = std::mem::take(&mut self.twins);
        let texts: Vec<String> = twins
            .iter()
            .map(|t| {
                self.instead[t.name] = Some(twin_of(self.pieces[t.name].text));
                self.written(t.start..t.close + 1)
            })
            .collect();
        (self.before, self.instead, self.after) = hooked;
        for (twin, text) in twins.iter().zip(texts) {
            let name = twin_of(self.pieces[twin.name].text);
            let head: String = (twin.start..twin.open)
                .map(|i| match self.pieces[i].token {
                    Token::Space => " ",
                    Token::Marker => "",
                    _ if i == twin.name => name.as_str(),
                    _ => self.pieces[i].text,
                })
                .collect();
            self.before[twin.start].insert_str(0, &format!("{head}; "));
            let parameters = twin.parameters.join(", ");
            self.after[twin.open].insert_str(
                0,
                &format!(" if (__builtin_expect(farsight_counting, 0)) return {name}({parameters});"),
            );
            let place = |i: usize| {
                let p = &self.pieces[i];
                format!("# {} {:?}", p.line, self.files[p.file])
            };
            let (start, end) = (place(twin.start), place(twin.close));
            self.after[twin.close].push_str(&format!("\n{start}\n{text}\n{end}\n"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::rewrite::{Language, rewrite};

    fn c(source: &str) -> String {
        rewrite(source, Language::C).unwrap().unwrap_or_default()
    }

    #[test]
    fn a_twin_calls_twins_and_has_the_lines_of_its_function() {
        let out = c("# 10 \"x.c\"\nstatic int fib(int n)\n{\n  if (n < 2) return n;\n  int x = _Cilk_spawn \
                     fib(n - 1);\n  int y = fib(n - 2);\n  _Cilk_sync;\n  return x + y;\n}\n");
        assert!(out.contains("static int fib__farsight(int n) ; static int fib(int n)"), "{out}");
        assert!(
            out.contains("if (__builtin_expect(farsight_counting, 0)) return fib__farsight(n);"),
            "{out}"
        );
        let twin = out.split("\n# 10 \"x.c\"\n").nth(1).expect("it has a line");
        assert!(twin.starts_with("static int fib__farsight(int n)\n{"), "{out}");
        assert!(
            twin.contains("farsight_twin_spawn(&farsight_s);") && twin.contains("fib__farsight(n - 1); })"),
            "{out}"
        );
        assert!(twin.contains("farsight_twin_call(&farsight_s); }), fib__farsight)(n - 2)"), "{out}");
        assert!(twin.contains("farsight_twin_sync();") && !twin.contains("farsight_frame"), "{out}");
        assert!(out.ends_with("}\n# 17 \"x.c\"\n\n"), "{out}");
    }

    #[test]
    fn what_cannot_be_doubled_has_no_twin() {
        for odd in [
            "int f(int n, ...) { _Cilk_spawn f(n); return 1; }",
            "int f(int (*g)(int)) { _Cilk_spawn f(g); return 1; }",
            "int f(int n) { static int k; k += n; _Cilk_spawn f(n); return k; }",
            "int main(int n) { _Cilk_spawn main(n); return 1; }",
            "int f(int n) { for (;;) _Cilk_spawn f(n); }",
        ] {
            assert!(!c(odd).contains("__farsight"), "{odd}");
        }
        for (plain, call) in [
            ("void f(void) { _Cilk_spawn f(); }", "return f__farsight();"),
            (
                "long f(long *restrict a, int b[4]) { _Cilk_spawn f(a, b); return 1; }",
                "return f__farsight(a, b);",
            ),
        ] {
            assert!(c(plain).contains(call), "{}", c(plain));
        }
    }
}
