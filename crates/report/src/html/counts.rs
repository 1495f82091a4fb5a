//! The counts of the page's JSON section: totals and threads as they are, functions as columns, the ones that
//! executed most first.

use profile::{Function, Tally};
use serde::Serialize;

use super::CountRun;
use super::head::Head;

/// Functions beyond these are summed up in one sentence: nobody scrolls that far.
const FUNCTIONS_MAX: usize = 5000;

/// What the page knows about runs of counts.
#[derive(Serialize)]
pub struct CountMode<'a> {
    runs: Vec<Counts<'a>>,
}

#[derive(Serialize)]
struct Counts<'a> {
    #[serde(flatten)]
    head: Head<'a>,
    threads: u64,
    /// Instructions, blocks, loads, stores, calls.
    total: [u64; 5],
    /// Thread id, then the same five.
    by_thread: Vec<(u64, [u64; 5])>,
    functions: Functions<'a>,
    functions_left_out: usize,
}

#[derive(Serialize, Default)]
struct Functions<'a> {
    name: Vec<&'a str>,
    object: Vec<&'a str>,
    file: Vec<&'a str>,
    line: Vec<u32>,
    calls: Vec<u64>,
    own: Vec<u64>,
    all: Vec<u64>,
}

impl<'a> CountMode<'a> {
    /// What the page shows of these runs; `None` when there are none.
    pub fn new(runs: &[CountRun<'a>]) -> Option<Self> {
        (!runs.is_empty()).then(|| CountMode { runs: runs.iter().map(Counts::new).collect() })
    }
}

impl<'a> Counts<'a> {
    fn new(page: &CountRun<'a>) -> Self {
        let CountRun { run, count } = *page;
        let mut functions: Vec<&'a Function> = count.functions.iter().collect();
        functions.sort_by_key(|f| std::cmp::Reverse(f.instructions_self));
        let mut columns = Functions::default();
        for f in functions.iter().take(FUNCTIONS_MAX) {
            columns.name.push(&f.name);
            columns.object.push(&f.object);
            columns.file.push(&f.file);
            columns.line.push(f.line);
            columns.calls.push(f.calls);
            columns.own.push(f.instructions_self);
            columns.all.push(f.instructions_total);
        }
        Counts {
            head: Head::new(run),
            threads: count.threads,
            total: five(&count.total),
            by_thread: count.by_thread.iter().map(|t| (t.id, five(&t.tally))).collect(),
            functions: columns,
            functions_left_out: functions.len().saturating_sub(FUNCTIONS_MAX),
        }
    }
}

fn five(t: &Tally) -> [u64; 5] {
    [t.instructions, t.blocks, t.loads, t.stores, t.calls]
}
