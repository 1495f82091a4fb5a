//! A real run against the definition: every event of a program, logged by the naive client, goes through the sets of
//! `inputsize::naive` and through the algorithm; `farsight growth` on the same program must agree with both.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use inputsize::core::replay::Replay;
use inputsize::core::thread::Config;
use inputsize::naive::Naive;
use inputsize::trace::{Event, Step};
use inputsize::{Activation, CellSize, Metric};
use wire::log::{class, what};

use crate::profiled::Program;

/// The sizes of a routine's activations, ascending, by its address.
type Sizes = BTreeMap<u64, Vec<u64>>;

/// Is the instruction at `pc` one by which a routine saves or restores a register of its caller's? That is control to the
/// runtime, like the return address beside it. `image` begins at the address where the program is linked.
fn saves_register(image: &[u8], pc: u64) -> bool {
    const LINKED_AT: u64 = 0x40_0000;
    let Some(code) = pc.checked_sub(LINKED_AT).and_then(|at| image.get(at as usize..)) else { return false };
    // push or pop of rbx, rbp or r12 to r15, or leave
    matches!(code, [0x53 | 0x55 | 0x5b | 0x5d | 0xc9, ..] | [0x41, 0x54..=0x57 | 0x5c..=0x5f, ..])
}

/// A step for each logged event; calls and returns unwind first, by the address of the return address.
fn steps(image: &[u8], events: &[wire::log::Event]) -> (Vec<Step>, Vec<u64>) {
    let mut numbers: BTreeMap<u64, u32> = BTreeMap::from([(0, 0)]);
    let mut addresses = vec![0];
    let mut routine = |address: u64| {
        *numbers.entry(address).or_insert_with(|| {
            addresses.push(address);
            addresses.len() as u32 - 1
        })
    };
    let mut out: Vec<Step> = Vec::new();
    for e in events {
        let (address, size) = (e.address, e.length);
        let mut add = |event: Event| out.push(Step { thread: e.tid, event });
        match e.what {
            what::THREAD => add(Event::ThreadStart { routine: 0 }),
            what::THREAD_DONE => add(Event::ThreadEnd),
            what::CALL | what::TAIL => {
                add(Event::Unwind { sp: size });
                add(Event::Call { routine: routine(address), sp: size, folded: false });
            }
            what::RETURN => add(Event::Unwind { sp: size }),
            what::SIGNAL => add(Event::SignalEnter { routine: routine(address) }),
            what::SIGNAL_DONE => add(Event::SignalExit),
            what::KERNEL_READ => add(Event::KernelRead { address, size }),
            what::KERNEL_WRITE => add(Event::KernelWrite { address, size }),
            what::FORGOTTEN => add(Event::Reset { address, size }),
            what::READ | what::WRITE | what::READ_WRITE if e.class != class::CONTROL => {
                if e.class == class::STACK && saves_register(image, e.pc) {
                    continue;
                }
                if e.what != what::WRITE {
                    add(Event::Read { address, size });
                }
                if e.what != what::READ {
                    add(Event::Write { address, size });
                }
            }
            _ => {}
        }
    }
    (out, addresses)
}

fn by_routine(activations: &[(u32, Activation<1>)], addresses: &[u64]) -> Sizes {
    let mut sizes = Sizes::new();
    for (_, a) in activations {
        sizes.entry(addresses[a.routine as usize]).or_default().push(a.trms);
    }
    sizes.values_mut().for_each(|list| list.sort_unstable());
    sizes
}

/// What a run of the program was by the definition, by the algorithm and by the runtime.
pub struct Compared {
    expected: Sizes,
    found: Sizes,
    run: crate::profiled::Profiled,
    /// Routines that were called before `main`: they read the environment, whose strings lie as chance has it.
    early: BTreeSet<u64>,
}

fn replay(args: &[&str]) -> Compared {
    compare(&Program::build(&["replay.c"], &["-O1", "-g", "-static", "-no-pie", "-pthread"]), &[], args)
}

/// Runs a program that is linked statically, at a fixed address; `flags` are farsight's.
pub fn compare(program: &Program, flags: &[&str], args: &[&str]) -> Compared {
    let run = program.profile(&[&["--fold", "none"], flags].concat(), args);
    let mut found = Sizes::new();
    for routine in run.document["routines"].as_array().unwrap() {
        let Some(address) = routine["address"].as_u64() else { continue };
        let sizes = crate::profiled::points(routine).into_iter();
        found.insert(address, sizes.flat_map(|p| vec![p.0; p.1 as usize]).collect());
    }

    let command: Vec<OsString> =
        std::iter::once(program.path().into()).chain(args.iter().map(OsString::from)).collect();
    let spec = launch::log::spec(&command, runtimes::LOG, 0);
    let outcome = launch::run(&spec).unwrap();
    assert_eq!(outcome.ended.shell_code(), 0);
    let (events, lost) = launch::log::read(&outcome.results);
    assert_eq!(lost, 0);
    let main = run.routine("main")["address"].as_u64().unwrap();
    let calls = events.iter().filter(|e| e.what == what::CALL).map(|e| e.address);
    let early = calls.take_while(|&address| address != main).collect();
    let image = std::fs::read(program.path()).unwrap();
    let (steps, addresses) = steps(&image, events);

    // Both in the order in which each thread's activations ended.
    let mut naive = Naive::<1>::run(CellSize::FOUR, &steps);
    naive.sort_by_key(|(thread, _)| *thread);
    for stamp_bits in [32, 10] {
        let config = Config { metric: Metric::Trms, cell_size: CellSize::FOUR, stamp_bits };
        let mut clever = Replay::<1>::run(config, 64, &steps);
        clever.sort_by_key(|(thread, _)| *thread);
        assert_eq!(naive.len(), clever.len());
        for (i, ((at, a), (bt, b))) in naive.iter().zip(&clever).enumerate() {
            let facts = |a: &Activation<1>| (a.routine, a.trms, a.induced, a.induced_self);
            assert_eq!((at, facts(a)), (bt, facts(b)), "activation {i}");
        }
    }
    Compared { expected: by_routine(&naive, &addresses), found, run, early }
}

impl Compared {
    pub fn agree_on(&self, names: &[&str]) {
        for name in names {
            let address = self.run.routine(name)["address"].as_u64().unwrap();
            assert_eq!(self.found.get(&address), self.expected.get(&address), "{name}");
        }
    }
}

#[test]
fn a_recorded_run_agrees_with_the_definition() {
    let compared = replay(&[]);
    // Where both saw the same calls, sizes must be the same. (The log knows no tail calls by jumps.)
    let (mut wrong, mut equal) = (Vec::new(), 0);
    let late = compared.expected.iter().filter(|(address, _)| !compared.early.contains(address));
    for (address, sizes) in late {
        match compared.found.get(address).filter(|seen| seen.len() == sizes.len()) {
            Some(seen) if seen == sizes => equal += 1,
            Some(seen) => wrong.push(format!("{address:#x}: {sizes:?} by the definition, {seen:?} found")),
            None => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(equal > 40, "only {equal} routines compared");
    compared.agree_on(&[
        "main",
        "sum",
        "deeper",
        "compare",
        "caught",
        "jumps",
        "handler",
        "interrupted",
        "reads",
    ]);
    compared.agree_on(&["maps", "unaligned", "copies", "list", "ladder", "look"]);
}

#[test]
fn recorded_threads_agree_with_the_definition() {
    // Who waits for whom is a matter of chance; what is handed over is not.
    replay(&["threads"]).agree_on(&["sum", "taken", "given"]);
}
