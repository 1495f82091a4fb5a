//! Random instruction sequences leave the same registers, flags, vectors and memory under the engine as natively: with
//! the counting client (counters in the code), with the logging one (a clean call at every access), and with the one of
//! growth (emitted code at every access, registers that stay lent from block to block).
//!
//! The sequences are made by `test-programs/instructions/random_sequences.c`, from fixed seeds. A failure is made
//! smaller before it is reported: the shortest prefix that differs, and of that what cannot be left out.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use transparency::case::of_test_programs;
use transparency::compile::Builder;

const SEEDS: [u32; 3] = [11, 12, 13];
const SEQUENCES: u32 = 600;
const LENGTH_MAX: u32 = 40;

/// Runs the program under the tool named by the first argument; a helper process, so that its output can be read.
const UNDER: &str = "FARSIGHT_RANDOM_UNDER";

#[test]
fn random_sequences_leave_the_same_state() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    if let Some(under) = std::env::var_os(UNDER) {
        return run_under(&under);
    }
    let builder = Builder { out: root.join("target/test-programs") };
    let cases = of_test_programs(&root.join("test-programs")).unwrap();
    let case = cases.iter().find(|c| c.name == "instructions/random_sequences").expect("the program");
    let program = case.command(&builder).unwrap()[0].clone();
    for seed in SEEDS {
        let args = [seed, 0, SEQUENCES].map(|n| n.to_string());
        let native = natively(&program, &args);
        assert_eq!(native.len(), SEQUENCES as usize + 1);
        for tool in ["count", "log", "growth"] {
            let got = under(tool, &program, &args);
            if let Some(k) = (0..native.len()).find(|&k| got.get(k) != Some(&native[k])) {
                panic!("{tool}: {}", smaller(tool, &program, seed, k as u32));
            }
        }
    }
}

fn natively(program: &str, args: &[String]) -> Vec<String> {
    lines(Command::new(program).args(args).output().unwrap().stdout)
}

/// In a process of its own: the program writes to its standard output.
fn under(tool: &str, program: &str, args: &[String]) -> Vec<String> {
    let out = Command::new(std::env::current_exe().unwrap())
        // (With one thread, as on one processor, a test's name stands before its first line.)
        .args(["--exact", "random_sequences_leave_the_same_state", "--nocapture", "--test-threads", "2"])
        .env(UNDER, format!("{tool} {program} {}", args.join(" ")))
        .output()
        .unwrap();
    lines(out.stdout)
}

/// The program's lines: a number and a hash, and the sum.
fn lines(out: Vec<u8>) -> Vec<String> {
    let hash = |w: &str| w.len() == 16 && u64::from_str_radix(w, 16).is_ok();
    let text = String::from_utf8_lossy(&out);
    text.lines().filter(|l| l.split(' ').next_back().is_some_and(hash)).map(str::to_owned).collect()
}

fn run_under(what: &std::ffi::OsStr) {
    let mut words = what.to_str().expect("plain text").split(' ');
    let tool = words.next().expect("a tool");
    let command: Vec<OsString> = words.map(OsString::from).collect();
    let flags = wire::boot::flags::WATCH_FLAGS;
    let spec = match tool {
        "log" => launch::log::spec(&command, runtimes::LOG, flags),
        "growth" => launch::Spec {
            command: &command,
            blob: runtimes::GROWTH,
            flags,
            fixed_bytes: wire::growth::FIXED_BYTES,
            prepare: &|results| {
                let header = wire::growth::Header {
                    magic: wire::growth::MAGIC,
                    version: wire::VERSION,
                    metric: wire::growth::Metric::Trms as u32,
                    cell_shift: 2,
                    fold: wire::growth::fold::ALLOC,
                    stamp_bits: 32,
                    ..wire::growth::Header::default()
                };
                results.put(0, header);
            },
            duration: None,
        },
        _ => launch::Spec {
            command: &command,
            blob: runtimes::COUNT,
            flags,
            fixed_bytes: wire::count::FIXED_BYTES,
            prepare: &launch::counts::prepare,
            duration: None,
        },
    };
    let outcome = launch::run(&spec).unwrap();
    assert_eq!(outcome.ended, launch::Ended::Code(0));
}

/// The smallest form of sequence `k` that still differs, as arguments for the program.
fn smaller(tool: &str, program: &str, seed: u32, k: u32) -> String {
    let differs = |length: u32, drop: &[u32]| {
        let mut args = [seed, k, 1, length].map(|n| n.to_string()).to_vec();
        args.extend(drop.iter().map(u32::to_string));
        natively(program, &args) != under(tool, program, &args)
    };
    let Some(length) = (1..=LENGTH_MAX).find(|&n| differs(n, &[])) else {
        return format!("{program} {seed} 0 {SEQUENCES}: sequence {k} differs, but not alone");
    };
    let mut drop = Vec::new();
    for i in 0..length {
        drop.push(i);
        if !differs(length, &drop) {
            drop.pop();
        }
    }
    let drop: Vec<String> = drop.iter().map(u32::to_string).collect();
    format!("{program} {seed} {k} 1 {length} {}", drop.join(" "))
}
