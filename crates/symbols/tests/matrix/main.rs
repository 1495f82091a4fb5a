//! The crate against what compilers, linkers and strippers really make.
//!
//! Programs are compiled here and carry their own answers: a section of (address, line, number) that inline
//! assembly fills in. One test per cell; a cell whose tools are missing is listed as ignored with the tool's
//! name. `cargo test -p symbols --test matrix -- --list` shows the cells.

mod answers;
mod builds;
mod companions;
mod stripped;
mod toolchain;

use libtest_mimic::{Arguments, Trial};

/// A cell: name, tools that it needs, what to do.
pub(crate) struct Cell {
    name: String,
    tools: Vec<&'static str>,
    run: Box<dyn FnOnce() + Send>,
}

impl Cell {
    fn new(name: impl Into<String>, tools: &[&'static str], run: impl FnOnce() + Send + 'static) -> Cell {
        Cell { name: name.into(), tools: tools.to_vec(), run: Box::new(run) }
    }
}

fn main() {
    let mut arguments = Arguments::from_args();
    // A cell is mostly waiting for compilers; more of them than cores only thrash.
    arguments.test_threads = arguments.test_threads.or(Some(2));
    let cells = [builds::cells(), companions::cells(), stripped::cells()].into_iter().flatten();
    let trials = cells.map(|cell| {
        let missing = cell.tools.iter().find(|tool| !toolchain::installed(tool));
        let kind = missing.map(|tool| format!("needs {tool}")).unwrap_or_default();
        let run = cell.run;
        let trial = Trial::test(cell.name, move || {
            run();
            Ok(())
        });
        trial.with_kind(kind).with_ignored_flag(missing.is_some())
    });
    libtest_mimic::run(&arguments, trials.collect()).exit();
}
