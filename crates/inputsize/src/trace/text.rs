//! Traces as text, for tests and for people: one step per line.
//!
//! ```text
//! # thread operation arguments
//! t1 start main
//! t1 call f            # options: sp=N, folded
//! t1 read x            # one cell; `x:8` is 8 bytes, `v[3]` the fourth word of v, `0x1000:4` an address
//! t1 write y
//! t1 cost 0 5
//! t1 return
//! ```
//! Threads, routines and variables are numbered in order of appearance; every variable gets 4 KB of its own.
//! Calls without `sp=` are given falling stack pointers, 16 bytes apart.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::{Event, Step};

/// A parsed text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Text {
    /// The steps.
    pub steps: Vec<Step>,
    /// Names of threads by number.
    pub threads: Vec<String>,
    /// Names of routines by number.
    pub routines: Vec<String>,
    /// Names of variables, in order of appearance.
    pub variables: Vec<String>,
}

/// A line that is no step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Counted from 1.
    pub line: usize,
    /// What was expected there.
    pub expected: &'static str,
}

/// Address of the first variable.
const VARIABLES: u64 = 0x10_0000;
/// Bytes between variables.
const VARIABLE_BYTES: u64 = 0x1000;
/// Stack pointer of a thread's first call.
const STACK_TOP: u64 = 0x7fff_0000;

/// Parses a text.
pub fn parse(text: &str) -> Result<Text, BadLine> {
    let mut out = Text::default();
    let mut sps: Vec<u64> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let bad = |expected| BadLine { line: index + 1, expected };
        let mut words = line.split_whitespace();
        let thread = number(&mut out.threads, words.next().unwrap_or_default());
        let operation = words.next().ok_or(bad("an operation"))?;
        let rest: Vec<&str> = words.collect();
        if sps.len() <= thread as usize {
            sps.resize(thread as usize + 1, STACK_TOP);
        }
        let sp = &mut sps[thread as usize];
        let mut routine =
            || rest.first().map(|name| number(&mut out.routines, name)).ok_or(bad("the name of a routine"));
        let folded = rest.contains(&"folded");
        let event = match operation {
            "start" => Event::ThreadStart { routine: routine()? },
            "end" => Event::ThreadEnd,
            "call" => {
                let routine = routine()?;
                *sp = option(&rest, "sp=").unwrap_or(*sp - 16);
                Event::Call { routine, sp: *sp, folded }
            }
            "return" => Event::Return,
            "tail" => Event::TailCall { routine: routine()?, folded },
            "unwind" => Event::Unwind { sp: option(&rest, "sp=").ok_or(bad("sp=N"))? },
            "signal" => Event::SignalEnter { routine: routine()? },
            "sigreturn" => Event::SignalExit,
            "cost" => {
                let mut numbers = rest.iter().map(|word| parse_number(word));
                let which = numbers.next().flatten().and_then(|n| u8::try_from(n).ok());
                let amount = numbers.next().flatten();
                which
                    .zip(amount)
                    .map(|(which, amount)| Event::Cost { which, amount })
                    .ok_or(bad("two numbers"))?
            }
            _ => {
                let place = rest.first().ok_or(bad("a place in memory"))?;
                let (address, size) = place_of(&mut out.variables, place).ok_or(bad("a place in memory"))?;
                match operation {
                    "read" => Event::Read { address, size },
                    "write" => Event::Write { address, size },
                    "kread" => Event::KernelRead { address, size },
                    "kwrite" => Event::KernelWrite { address, size },
                    "reset" => Event::Reset { address, size },
                    _ => return Err(bad("a known operation")),
                }
            }
        };
        out.steps.push(Step { thread, event });
    }
    Ok(out)
}

fn number(names: &mut Vec<String>, name: &str) -> u32 {
    let position = names.iter().position(|known| known == name).unwrap_or_else(|| {
        names.push(name.to_string());
        names.len() - 1
    });
    position as u32
}

fn option(words: &[&str], key: &str) -> Option<u64> {
    words.iter().find_map(|word| word.strip_prefix(key)).and_then(parse_number)
}

fn parse_number(word: &str) -> Option<u64> {
    match word.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => word.parse().ok(),
    }
}

fn place_of(variables: &mut Vec<String>, place: &str) -> Option<(u64, u64)> {
    let (name, size) = match place.split_once(':') {
        Some((name, size)) => (name, parse_number(size)?),
        None => (place, 4),
    };
    if let Some(address) = parse_number(name) {
        return Some((address, size));
    }
    let (name, index) = match name.split_once('[') {
        Some((name, index)) => (name, parse_number(index.strip_suffix(']')?)?),
        None => (name, 0),
    };
    let variable = u64::from(number(variables, name));
    Some((VARIABLES + variable * VARIABLE_BYTES + 4 * index, size))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers_and_addresses() {
        let text =
            parse("a start main\na call f folded\na read v[2]:8 # twice\n\na read 0x40:1\na return").unwrap();
        assert_eq!(text.routines, ["main", "f"]);
        assert_eq!(text.variables, ["v"]);
        assert_eq!(text.steps.len(), 5);
        assert_eq!(text.steps[1].event, Event::Call { routine: 1, sp: STACK_TOP - 16, folded: true });
        assert_eq!(text.steps[2].event, Event::Read { address: VARIABLES + 8, size: 8 });
        assert_eq!(text.steps[3].event, Event::Read { address: 0x40, size: 1 });
    }

    #[test]
    fn bad_lines_are_named() {
        assert_eq!(parse("a start main\na fly x"), Err(BadLine { line: 2, expected: "a known operation" }));
        assert_eq!(parse("a unwind"), Err(BadLine { line: 1, expected: "sp=N" }));
        assert_eq!(parse("a"), Err(BadLine { line: 1, expected: "an operation" }));
        assert_eq!(parse("a read v[1"), Err(BadLine { line: 1, expected: "a place in memory" }));
    }
}
