//! Real programs from Debian, as a table.
//!
//! A row says what must be installed, how to prepare the working directory (natively, by bash), and what to run: either a
//! command, which gets the wrapper in front, or a script, which puts `$WRAP` in front of the programs under test itself
//! (servers with their clients, tools that start tools). What differs between two native runs is masked, as little as
//! possible and by name. `{programs}` in a setup is `test-programs/real`.

mod archives;
mod compilers;
mod runtimes;
mod servers;
mod shell;
mod stress;

use std::time::Duration;

use regex_lite::Regex;

use crate::case::{Case, Program};
use crate::difference::Normalise;
use crate::spec::{End, Ring};

/// One row.
struct Real {
    name: &'static str,
    needs: &'static [&'static str],
    setup: &'static str,
    run: Run,
    /// Removed from standard output before comparing.
    out: &'static [&'static str],
    /// Removed from standard error before comparing.
    err: &'static [&'static str],
    /// What standard error must hold natively.
    err_has: Option<&'static str>,
    /// Files whose path matches are not compared.
    files: &'static [&'static str],
    limit_s: u64,
}

enum Run {
    Command(&'static [&'static str]),
    Script(&'static str),
}

/// What most rows leave as it is.
const ROW: Real = Real {
    name: "",
    needs: &[],
    setup: "",
    run: Run::Command(&[]),
    out: &[],
    err: &[],
    err_has: None,
    files: &[],
    limit_s: 120,
};

/// All cases of real programs, in order of name.
pub fn cases() -> Vec<Case> {
    let tables = [shell::ROWS, archives::ROWS, compilers::ROWS, runtimes::ROWS, servers::ROWS, stress::ROWS];
    let mut all: Vec<Case> = tables.into_iter().flatten().map(case).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

fn case(row: &Real) -> Case {
    let masks = |list: &[&str]| list.iter().filter_map(|m| Regex::new(m).ok()).collect();
    let own = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
    Case {
        name: format!("real/{}", row.name),
        ring: Ring::Full,
        program: match row.run {
            Run::Command(words) => Program::Command(own(words)),
            Run::Script(text) => Program::Script(text.to_owned()),
        },
        needs: own(row.needs),
        cpu: None,
        setup: (!row.setup.is_empty()).then(|| row.setup.to_owned()),
        stdin: String::new(),
        stdout: None,
        stderr_has: row.err_has.map(str::to_owned),
        end: Some(End::Exit(0)),
        normalise: Normalise { stdout: masks(row.out), stderr: masks(row.err), files: masks(row.files) },
        repeat: 1,
        limit: Duration::from_secs(row.limit_s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mask_compiles_and_every_name_is_its_own() {
        let tables =
            [shell::ROWS, archives::ROWS, compilers::ROWS, runtimes::ROWS, servers::ROWS, stress::ROWS];
        let rows: Vec<&Real> = tables.into_iter().flatten().collect();
        for row in &rows {
            for mask in row.out.iter().chain(row.err).chain(row.files) {
                assert!(Regex::new(mask).is_ok(), "{}: {mask}", row.name);
            }
            assert_eq!(rows.iter().filter(|r| r.name == row.name).count(), 1, "{} is there twice", row.name);
        }
    }
}
