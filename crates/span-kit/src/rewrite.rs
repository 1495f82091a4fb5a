//! Cilk to C: rewrites preprocessed source so that stock compilers take it and the runtime hears of it.
//!
//! ```text
//! cilk_spawn f(x)            ({ FRAME g = farsight_spawn(&site, …); f(x); })
//! cilk_sync;                 farsight_sync(…);
//! cilk_for (a; b; c) S       for (FRAME l = farsight_loop(&s1); …) for (a; b; c) for (FRAME i = farsight_iteration(&s2, …); …) S
//! cilk_scope { … }           for (FRAME s = farsight_loop(…); …) { … }
//! int f(…) { … spawn … }     int f(…) { FRAME r = farsight_begin("f", …); … spawn … }
//! f(y)                       (farsight_call(&site, …), f)(y)          in C, where f is known to spawn
//! g(z)                       ({ FRAME c = farsight_enter(&site, …); g(z); })
//! ```
//! A `FRAME` is a variable with the `cleanup` attribute, which gcc and clang run when its scope is left in whatever
//! way; so a function that spawns waits for its children at every return, and an exception ends a task.
//!
//! The last form is for calls of functions that do not spawn, are defined in the same source and contain a loop, from
//! functions that spawn and from `main`: these can hold a span. Smaller ones are part of their caller.
//!
//! Functions without loops and without calls that are not rewritten, such as fib, have strands of some nanoseconds; their
//! hooks are told so and need not read the clock each time (C only).
//!
//! It works on tokens, not on syntax: a function body is a `{` after a `)` outside of any function. Everything that
//! is not Cilk is passed through byte for byte, line markers included, so debug information stays right.
//!
//! For counting instructions, such functions are there twice (`rewrite/twin.rs`).
//!
//! Arguments of a spawned call are evaluated inside the task; Cilk does so before it. That moves their cost, not
//! their effect: the execution is serial.

mod twin;

use std::fmt::Write;

use twin::{Twin, twin_of};

/// Which language the source is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// C.
    C,
    /// C++.
    Cpp,
}

/// Why a source cannot be rewritten.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {what}")]
pub struct CilkError {
    /// Source file.
    pub file: String,
    /// Line.
    pub line: u32,
    /// What is wrong there.
    pub what: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    Word,
    Space,
    /// A whole `# 12 "file"` line.
    Marker,
    /// A string, number or character.
    Literal,
    Punctuation,
}

struct Piece<'a> {
    token: Token,
    text: &'a str,
    line: u32,
    file: usize,
}

/// Cuts a source into pieces that add up to it.
fn pieces(source: &str) -> (Vec<Piece<'_>>, Vec<String>) {
    let bytes = source.as_bytes();
    let mut files = vec![String::new()];
    let mut out: Vec<Piece<'_>> = Vec::new();
    let (mut at, mut line, mut file, mut fresh) = (0, 1, 0, true);
    while at < bytes.len() {
        let start = at;
        let c = bytes[at];
        let token = if c == b'#' && fresh {
            at = source[at..].find('\n').map_or(bytes.len(), |n| at + n);
            Token::Marker
        } else if c.is_ascii_whitespace() {
            while at < bytes.len() && bytes[at].is_ascii_whitespace() {
                at += 1;
                // A marker may follow each newline.
                if bytes[at - 1] == b'\n' {
                    break;
                }
            }
            Token::Space
        } else if c == b'"' && out.last().is_some_and(|p| p.token == Token::Word && p.text.ends_with('R')) {
            at = raw_string_end(source, at);
            Token::Literal
        } else if c == b'"' || c == b'\'' {
            at += 1;
            while at < bytes.len() && bytes[at] != c {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            at = (at + 1).min(bytes.len());
            Token::Literal
        } else if c.is_ascii_digit() {
            while at < bytes.len() && (bytes[at].is_ascii_alphanumeric() || matches!(bytes[at], b'.' | b'_'))
            {
                at += 1;
            }
            Token::Literal
        } else if c.is_ascii_alphabetic() || c == b'_' || c == b'$' || c >= 0x80 {
            while at < bytes.len()
                && (bytes[at].is_ascii_alphanumeric()
                    || matches!(bytes[at], b'_' | b'$')
                    || bytes[at] >= 0x80)
            {
                at += 1;
            }
            Token::Word
        } else {
            at += 1;
            Token::Punctuation
        };
        while !source.is_char_boundary(at) {
            at += 1;
        }
        let text = &source[start..at];
        out.push(Piece { token, text, line, file });
        if let Some((number, name)) = Some(text).filter(|_| token == Token::Marker).and_then(marker) {
            line = number - 1; // the newline after it adds one
            file = files.iter().position(|f| *f == name).unwrap_or_else(|| {
                files.push(name);
                files.len() - 1
            });
        }
        line = line.wrapping_add(text.matches('\n').count() as u32);
        fresh = text.ends_with('\n') || (fresh && token == Token::Space);
    }
    (out, files)
}

/// `# 12 "file" flags`.
fn marker(text: &str) -> Option<(u32, String)> {
    let rest = text.trim_start_matches('#').trim_start();
    let rest = rest.strip_prefix("line ").unwrap_or(rest);
    let (number, rest) = rest.split_once(' ')?;
    let name = rest.strip_prefix('"')?.split('"').next()?;
    Some((number.parse::<u32>().ok().filter(|&n| n > 0)?, name.to_owned()))
}

fn raw_string_end(source: &str, at: usize) -> usize {
    let rest = &source[at + 1..];
    let Some(open) = rest.find('(') else { return source.len() };
    let end = format!("){}\"", &rest[..open]);
    rest.find(&end).map_or(source.len(), |n| at + 1 + n + end.len())
}

/// A `{` that is open.
struct Brace {
    /// Its piece.
    at: usize,
    /// The name of the function whose body it starts.
    function: Option<String>,
}

struct Rewriter<'a> {
    pieces: Vec<Piece<'a>>,
    files: Vec<String>,
    language: Language,
    /// Text to put before a piece, and instead of it.
    before: Vec<String>,
    instead: Vec<Option<String>>,
    after: Vec<String>,
    braces: Vec<Brace>,
    spawners: Vec<String>,
    /// Functions that contain a loop.
    loopers: Vec<String>,
    /// Spawners of straight code alone: no loop, and no call that the runtime does not hear of.
    straight: Vec<String>,
    /// Of these, those that are there twice, and their names.
    twins: Vec<Twin>,
    twin_names: Vec<String>,
    /// The twins are being written, not the functions.
    in_twins: bool,
    sites: usize,
}

/// Rewrites `source`, the output of a preprocessor. `None` if there is no Cilk in it.
pub fn rewrite(source: &str, language: Language) -> Result<Option<String>, CilkError> {
    if !["_Cilk_spawn", "_Cilk_sync", "_Cilk_for", "_Cilk_scope"].iter().any(|w| source.contains(w)) {
        return Ok(None);
    }
    let (pieces, files) = pieces(source);
    let n = pieces.len();
    let mut r = Rewriter {
        pieces,
        files,
        language,
        before: vec![String::new(); n],
        instead: vec![None; n],
        after: vec![String::new(); n],
        braces: Vec::new(),
        spawners: Vec::new(),
        loopers: Vec::new(),
        straight: Vec::new(),
        twins: Vec::new(),
        twin_names: Vec::new(),
        in_twins: false,
        sites: 0,
    };
    r.find_spawners();
    r.find_straight();
    r.find_twins();
    r.run()?;
    r.add_twins()?;
    Ok(Some(r.written(0..r.pieces.len())))
}

/// `for (FRAME name = start(&site more); once; ) `: a statement that `start` and `end` are called around.
fn hook(name: &str, start: &str, end: &str, site: &str, more: &str) -> String {
    format!(
        "for (__attribute__((cleanup({end}))) struct farsight_frame {name} = \
         ({{ static struct farsight_site farsight_s = {site}; {start}(&farsight_s{more}); }}); {name}.once; {name}.once = 0) "
    )
}

fn is_cilk(word: &str) -> bool {
    matches!(word, "_Cilk_spawn" | "_Cilk_sync" | "_Cilk_for" | "_Cilk_scope")
}

impl Rewriter<'_> {
    /// These pieces, rewritten.
    fn written(&self, pieces: std::ops::Range<usize>) -> String {
        let mut out = String::new();
        for i in pieces {
            out.push_str(&self.before[i]);
            out.push_str(self.instead[i].as_deref().unwrap_or(self.pieces[i].text));
            out.push_str(&self.after[i]);
        }
        out
    }

    /// The piece before `at` that is neither space nor marker.
    fn previous(&self, at: usize) -> Option<usize> {
        (0..at).rev().find(|&i| !matches!(self.pieces[i].token, Token::Space | Token::Marker))
    }

    fn next(&self, at: usize) -> Option<usize> {
        (at + 1..self.pieces.len()).find(|&i| !matches!(self.pieces[i].token, Token::Space | Token::Marker))
    }

    fn text(&self, at: Option<usize>) -> &str {
        at.map_or("", |i| self.pieces[i].text)
    }

    /// The bracket that the one at `close` closes.
    fn opening(&self, close: usize) -> Option<usize> {
        let mut depth = 0;
        for i in (0..=close).rev() {
            match self.pieces[i].text {
                ")" | "]" | "}" if self.pieces[i].token == Token::Punctuation => depth += 1,
                "(" | "[" | "{" if self.pieces[i].token == Token::Punctuation => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The bracket that closes the one at `open`.
    fn closing(&self, open: usize) -> Option<usize> {
        let mut depth = 0;
        for i in open..self.pieces.len() {
            match self.pieces[i].text {
                "(" | "[" | "{" if self.pieces[i].token == Token::Punctuation => depth += 1,
                ")" | "]" | "}" if self.pieces[i].token == Token::Punctuation => {
                    depth -= 1;
                    if depth == 0 {
                        return Some(i);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// The name of the function whose body starts with the `{` at `at`, if it is one.
    fn function_at(&self, at: usize) -> Option<String> {
        let mut i = self.previous(at)?;
        // Words between the parameters and the body of a member function.
        while matches!(self.pieces[i].text, "const" | "noexcept" | "override" | "final" | "mutable" | "try") {
            i = self.previous(i)?;
        }
        let inside = self.braces.iter().any(|b| b.function.is_some());
        if self.pieces[i].text == "]" {
            return Some("lambda".into()); // [captures] { … }
        }
        if self.pieces[i].text != ")" {
            return None;
        }
        let mut open = self.opening(i)?;
        let mut name = self.previous(open)?;
        // Attributes and noexcept(…) come after the parameters.
        while matches!(self.pieces[name].text, "__attribute__" | "noexcept" | "__asm__" | "asm") {
            i = self.previous(name)?;
            if self.pieces[i].text != ")" {
                return None;
            }
            open = self.opening(i)?;
            name = self.previous(open)?;
        }
        if self.pieces[name].text == "]" {
            return Some("lambda".into());
        }
        if inside || self.pieces[name].token != Token::Word {
            return None;
        }
        if matches!(self.pieces[name].text, "if" | "for" | "while" | "switch" | "catch") {
            return None;
        }
        Some(self.pieces[name].text.to_owned())
    }

    /// The functions whose bodies contain Cilk.
    fn find_spawners(&mut self) {
        for i in 0..self.pieces.len() {
            let p = &self.pieces[i];
            match p.text {
                "{" if p.token == Token::Punctuation => {
                    let function = self.function_at(i);
                    self.braces.push(Brace { at: i, function });
                }
                "}" if p.token == Token::Punctuation => {
                    self.braces.pop();
                }
                word if p.token == Token::Word && is_cilk(word) => {
                    let name = self.braces.iter().rev().find_map(|b| b.function.clone());
                    if let Some(name) = name.filter(|n| !self.spawners.contains(n)) {
                        self.spawners.push(name);
                    }
                }
                "for" | "while" if p.token == Token::Word => {
                    let name = self.braces.iter().rev().find_map(|b| b.function.clone());
                    if let Some(name) = name.filter(|n| !self.loopers.contains(n)) {
                        self.loopers.push(name);
                    }
                }
                _ => {}
            }
        }
        self.braces.clear();
    }

    /// The spawners whose strands are too short to be timed one by one. Not in C++, where anything may be a call.
    fn find_straight(&mut self) {
        if self.language == Language::Cpp {
            return;
        }
        let mut crooked: Vec<String> = Vec::new();
        for i in 0..self.pieces.len() {
            match (self.pieces[i].token, self.pieces[i].text) {
                (Token::Punctuation, "{") => {
                    let function = self.function_at(i);
                    self.braces.push(Brace { at: i, function });
                }
                (Token::Punctuation, "}") => {
                    self.braces.pop();
                }
                _ => {}
            }
            let Some(function) = self.braces.iter().rev().find_map(|b| b.function.as_ref()) else { continue };
            if !crooked.contains(function) && !self.is_straight(i) {
                crooked.push(function.clone());
            }
        }
        self.braces.clear();
        self.straight = self.spawners.iter().filter(|s| !crooked.contains(s)).cloned().collect();
    }

    /// Whether the piece at `at` takes no time that could matter, or the runtime hears of it.
    fn is_straight(&self, at: usize) -> bool {
        let (token, text) = (self.pieces[at].token, self.pieces[at].text);
        let opens = self.text(self.next(at)) == "(";
        match token {
            // A call of what is computed.
            Token::Punctuation => !(matches!(text, ")" | "]") && opens),
            Token::Word => match text {
                "for" | "while" | "do" | "goto" | "asm" | "__asm__" | "_Cilk_for" | "_Cilk_scope" => false,
                "if" | "switch" | "return" | "sizeof" | "__builtin_expect" | "_Cilk_spawn" => true,
                _ if !opens => true,
                _ if self.text(self.previous(at)) == "_Cilk_spawn" => true,
                _ => self.is_call(at) && (self.is_spawner(text) || self.loopers.iter().any(|l| l == text)),
            },
            _ => true,
        }
    }

    fn is_spawner(&self, name: &str) -> bool {
        self.spawners.iter().any(|s| s == name)
    }

    /// The last argument of hooks that are followed by code of the function around: whether that is straight.
    fn nearness(&self) -> &'static str {
        let function = self.braces.iter().rev().find_map(|b| b.function.as_ref());
        if function.is_some_and(|f| self.straight.contains(f)) { "1" } else { "0" }
    }

    /// How hooks of such functions are called: inlined only into straight code.
    fn far(&self) -> &'static str {
        if self.nearness() == "1" { "" } else { "_far" }
    }

    fn error(&self, at: usize, what: &'static str) -> CilkError {
        let p = &self.pieces[at];
        CilkError { file: self.files[p.file].clone(), line: p.line, what }
    }

    /// `{"file", "function", "callee", line, kind, 0}`.
    fn site(&mut self, at: usize, callee: &str, kind: u32) -> String {
        let p = &self.pieces[at];
        let function = self.braces.iter().rev().find_map(|b| b.function.as_deref()).unwrap_or("");
        self.sites += 1;
        format!("{{{:?}, {function:?}, {callee:?}, {}, {kind}, 0}}", self.files[p.file], p.line)
    }

    /// Makes sure that the function around has a guard.
    fn guard_function(&mut self, at: usize) -> Result<(), CilkError> {
        let found = self.braces.iter().rev().find_map(|b| Some((b.at, b.function.clone()?)));
        let Some((brace, name)) = found else {
            return Err(
                self.error(at, "Cilk outside of a function, or in one whose start was not recognized")
            );
        };
        if self.after[brace].is_empty() && self.in_twins {
            let site = self.site(brace, &name, 0);
            let _ = write!(
                self.after[brace],
                " static struct farsight_site farsight_began = {site}; \
                 __attribute__((cleanup(farsight_twin_return), unused)) char farsight_twin; \
                 farsight_twin_begin(&farsight_began);"
            );
        } else if self.after[brace].is_empty() {
            let (near, far) = (self.nearness(), self.far());
            let _ = write!(
                self.after[brace],
                " __attribute__((cleanup(farsight_return{far}), unused)) struct farsight_frame farsight_frame = \
                 farsight_begin{far}({name:?}, __builtin_return_address(0), {near});"
            );
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), CilkError> {
        for i in 0..self.pieces.len() {
            let (token, text) = (self.pieces[i].token, self.pieces[i].text);
            match (token, text) {
                (Token::Punctuation, "{") => {
                    let function = self.function_at(i);
                    self.braces.push(Brace { at: i, function });
                }
                (Token::Punctuation, "}") => {
                    self.braces.pop();
                }
                (Token::Word, "_Cilk_sync") => {
                    self.guard_function(i)?;
                    if self.in_twins {
                        self.instead[i] = Some("farsight_twin_sync()".into());
                        continue;
                    }
                    self.instead[i] =
                        Some(format!("farsight_sync{}(&farsight_frame, {})", self.far(), self.nearness()));
                }
                (Token::Word, "_Cilk_spawn") => self.spawn(i)?,
                (Token::Word, "_Cilk_for") => self.parallel_for(i)?,
                (Token::Word, "_Cilk_scope") => self.scope(i)?,
                (Token::Word, word)
                    if self.language == Language::C && self.spawners.iter().any(|s| s == word) =>
                {
                    self.call(i);
                }
                (Token::Word, word) if self.loopers.iter().any(|s| s == word) => self.plain_call(i),
                _ => {}
            }
        }
        Ok(())
    }

    fn spawn(&mut self, at: usize) -> Result<(), CilkError> {
        self.guard_function(at)?;
        let mut end = self.next(at);
        let mut callee = String::new();
        while let Some(i) = end {
            match (self.pieces[i].token, self.pieces[i].text) {
                (Token::Punctuation, ";" | "," | ")" | "}") => break,
                (Token::Punctuation, "(" | "[" | "{") => {
                    if callee.is_empty() {
                        callee = self.text(self.previous(i)).to_owned();
                    }
                    end = self.closing(i).and_then(|c| self.next(c));
                }
                _ => end = self.next(i),
            }
        }
        let end = end.ok_or_else(|| self.error(at, "a spawn that never ends"))?;
        let site = self.site(at, &callee, 1);
        self.before[end].insert_str(0, "; })");
        if self.in_twins {
            self.instead[at] = Some(format!(
                "({{ static struct farsight_site farsight_s = {site}; \
                 __attribute__((cleanup(farsight_twin_child_end), unused)) char farsight_g; \
                 farsight_twin_spawn(&farsight_s);"
            ));
            let spawned = self.next(at).filter(|&i| self.twin_names.iter().any(|t| t == self.pieces[i].text));
            if let Some(i) = spawned {
                self.instead[i] = Some(twin_of(self.pieces[i].text));
            }
            return Ok(());
        }
        let (near, far) = (self.nearness(), self.far());
        // What follows is the task: straight until it begins, if it has a beginning.
        let task = if self.is_spawner(&callee) { near } else { "0" };
        self.instead[at] = Some(format!(
            "({{ static struct farsight_site farsight_s = {site}; \
             __attribute__((cleanup(farsight_child_end{far}), unused)) struct farsight_frame farsight_g = \
             farsight_spawn{far}(&farsight_s, &farsight_frame, {task}, {near});"
        ));
        Ok(())
    }

    fn parallel_for(&mut self, at: usize) -> Result<(), CilkError> {
        self.guard_function(at)?;
        let open = self.next(at).filter(|&i| self.pieces[i].text == "(");
        let close = open.and_then(|o| self.closing(o));
        let Some(close) = close else { return Err(self.error(at, "a parallel loop without a head")) };
        let n = self.sites;
        let (whole, each) = (self.site(at, "parallel loop", 2), self.site(at, "iteration", 3));
        // Sites cannot be static variables inside a head; a statement expression holds them. What is spawned in an
        // iteration is the iteration's: its frame hides the function's.
        let outer = hook(&format!("farsight_l{n}"), "farsight_loop_far", "farsight_loop_end_far", &whole, "");
        let loop_frame = format!(", &farsight_l{n}");
        let inner = hook(
            "farsight_frame",
            "farsight_iteration_far",
            "farsight_iteration_end_far",
            &each,
            &loop_frame,
        );
        self.instead[at] = Some(format!("{outer}for "));
        self.after[close].push_str(&format!(" {inner}"));
        Ok(())
    }

    fn scope(&mut self, at: usize) -> Result<(), CilkError> {
        self.guard_function(at)?;
        let site = self.site(at, "scope", 0);
        // As with iterations.
        self.instead[at] =
            Some(hook("farsight_frame", "farsight_loop_far", "farsight_scope_end_far", &site, ""));
        Ok(())
    }

    /// A call of a function with a loop in it, from a function that spawns or from `main`.
    fn plain_call(&mut self, at: usize) {
        let name = self.pieces[at].text.to_owned();
        let caller = self.braces.iter().rev().find_map(|b| b.function.as_deref());
        let matters = caller.is_some_and(|c| c == "main" || self.spawners.iter().any(|s| s == c));
        if !matters || self.spawners.contains(&name) || !self.is_call(at) {
            return;
        }
        let Some(close) = self.next(at).and_then(|open| self.closing(open)) else { return };
        let site = self.site(at, &name, 0);
        self.after[close].push_str("; })");
        if self.in_twins {
            self.instead[at] = Some(format!(
                "({{ static struct farsight_site farsight_s = {site}; \
                 __attribute__((cleanup(farsight_twin_leave), unused)) char farsight_g; \
                 farsight_twin_enter(&farsight_s); {name}"
            ));
            return;
        }
        let (near, far) = (self.nearness(), self.far());
        self.instead[at] = Some(format!(
            "({{ static struct farsight_site farsight_s = {site}; \
             __attribute__((cleanup(farsight_leave{far}), unused)) struct farsight_frame farsight_g = \
             farsight_enter{far}(&farsight_s, {near}); {name}"
        ));
    }

    /// A call of a function that spawns, from inside a function.
    fn call(&mut self, at: usize) {
        if !self.is_call(at) {
            return;
        }
        let name = self.pieces[at].text.to_owned();
        let site = self.site(at, &name, 0);
        if self.in_twins {
            let name = if self.twin_names.contains(&name) { twin_of(&name) } else { name };
            self.instead[at] = Some(format!(
                "(({{ static struct farsight_site farsight_s = {site}; farsight_twin_call(&farsight_s); }}), {name})"
            ));
            return;
        }
        let (near, far) = (self.nearness(), self.far());
        self.instead[at] = Some(format!(
            "(({{ static struct farsight_site farsight_s = {site}; farsight_call{far}(&farsight_s, {near}); }}), {name})"
        ));
    }

    /// Whether the function named at `at` is called there, by itself.
    fn is_call(&self, at: usize) -> bool {
        let before = self.previous(at);
        let spawned = self.text(before) == "_Cilk_spawn";
        let called = self.next(at).is_some_and(|n| self.pieces[n].text == "(");
        let inside = self.braces.iter().any(|b| b.function.is_some());
        let member = matches!(self.text(before), "." | ">" | ":" | "&");
        // After a type it is a declaration.
        let declared = before.is_some_and(|b| {
            let p = &self.pieces[b];
            p.token == Token::Word && !matches!(p.text, "return" | "else" | "do" | "case") && !is_cilk(p.text)
        }) || self.text(before) == "*" && self.is_declaration(at);
        !(spawned || !called || !inside || member || declared)
    }

    /// `type *f(` at the start of a statement.
    fn is_declaration(&self, at: usize) -> bool {
        let star = self.previous(at);
        let word = star.and_then(|s| self.previous(s));
        let start = word.and_then(|w| self.previous(w));
        word.is_some_and(|w| self.pieces[w].token == Token::Word)
            && matches!(self.text(start), ";" | "{" | "}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn c(source: &str) -> String {
        rewrite(source, Language::C).unwrap().unwrap_or_default()
    }

    #[test]
    fn what_is_not_cilk_stays_as_it_is() {
        let source = "# 1 \"a.c\"\nint main(void) { return '\"' + sizeof \"{ _Cilk\"; }\n";
        assert_eq!(rewrite(source, Language::C), Ok(None));
        let source = format!("{source}void f(void) {{ _Cilk_sync; }}");
        assert!(c(&source).starts_with(&source[..source.find("void f").unwrap()]));
    }

    #[test]
    fn lines_and_functions_are_known() {
        let out = c(
            "# 10 \"x.c\"\nint fib(int n)\n{\n  int x = _Cilk_spawn fib(n - 1);\n  int y = fib(n - 2);\n}\n",
        );
        assert!(out.contains("{\"x.c\", \"fib\", \"fib\", 12, 1, 0}"), "{out}");
        assert!(out.contains("{\"x.c\", \"fib\", \"fib\", 13, 0, 0}"), "{out}");
        assert!(out.contains("farsight_begin(\"fib\", __builtin_return_address(0), 1)"), "{out}");
        assert!(out.contains("fib(n - 1); });"), "{out}");
    }

    #[test]
    fn declarations_are_not_calls() {
        let out = c("int g(void); void *g2(int);\nint g(void) { int g(void); _Cilk_sync; return 1; }");
        assert!(!out.contains("farsight_call"), "{out}");
    }

    #[test]
    fn calls_of_functions_with_loops_are_sites() {
        let out = c("int w(int n) { while (n) n--; return n; }\nint s(int n) { return n; }\n\
                     int f(int n) { _Cilk_spawn w(1); int k = w(w(2)) + s(3); _Cilk_sync; return k; }");
        assert_eq!(out.matches("= farsight_enter_far(").count(), 2, "{out}");
        assert_eq!(out.matches("= farsight_spawn_far(").count(), 1, "{out}");
    }

    #[test]
    fn straight_code_is_told_from_loops_and_foreign_calls() {
        let near = |body: &str| {
            let out = c(&format!("int w(int n) {{ while (n) n--; return n; }}\nint f(int n) {{ {body} }}"));
            out.contains("farsight_begin(\"f\", __builtin_return_address(0), 1)")
        };
        for body in [
            "if (n < 2) return n; int x = _Cilk_spawn f(n - 1); int y = f(n - 2); _Cilk_sync; return x + y;",
            "_Cilk_spawn w(n); n = w(n) * sizeof(int); _Cilk_sync; return n;",
            "_Cilk_spawn memset(0, 0, n); return n;",
        ] {
            assert!(near(body), "{body}");
        }
        for body in [
            "for (int i = 0; i < n; i++) _Cilk_spawn f(i);",
            "puts(\"x\"); _Cilk_spawn f(1);",
            "_Cilk_spawn f(abs(n));",
            "_Cilk_spawn f(n); (*p)(n);",
            "_Cilk_spawn f(n); p[1](n); p->q(n);",
            "_Cilk_spawn f(n); again: goto again;",
            "_Cilk_for (int i = 0; i < n; i++) n = i;",
        ] {
            assert!(!near(body), "{body}");
        }
        // What is spawned and has no beginning of its own may be anything.
        let out = c("void w(void);\nvoid f(void) { _Cilk_spawn w(); }");
        assert!(out.contains("farsight_spawn(&farsight_s, &farsight_frame, 0, 1)"), "{out}");
    }

    #[test]
    fn cilk_outside_of_functions_is_an_error() {
        let e = rewrite("# 3 \"q.c\"\nint x = _Cilk_spawn f();", Language::C).unwrap_err();
        assert_eq!((e.file.as_str(), e.line), ("q.c", 3));
    }
}
