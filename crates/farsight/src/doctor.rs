//! `farsight doctor`: what works on this machine, and how to fix what does not.
//!
//! Each finding is tried, not guessed, where that costs nothing: the engine is run on a program of this machine.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::{fs, thread};

use anyhow::Result;
use launch::Spec;
use launch::counts;
use serde_json::{Value, json};

use crate::output;

/// Say what works on this machine, and how to fix what does not
///
/// Exit status: 0 when every mode can run, 1 when one cannot.
#[derive(clap::Args)]
pub struct Args {
    /// Write the findings as JSON, - for stdout
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

/// How well something works.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Grade {
    /// Works.
    Good,
    /// Works less well than it could.
    Fair,
    /// Does not work.
    Bad,
}

struct Finding {
    what: &'static str,
    grade: Grade,
    found: String,
    remedy: String,
}

pub fn run(args: &Args) -> Result<ExitCode> {
    let findings = [processor(), kernel(), tracing(), engine(), sampling(), cores(), debug_files()];
    if let Some(path) = &args.json {
        output::write_json(path, &document(&findings))?;
    }
    if args.json.as_deref().is_none_or(|p| p.as_os_str() != "-") {
        output::print(&table(&findings))?;
    }
    let broken = findings.iter().any(|f| f.grade == Grade::Bad);
    Ok(ExitCode::from(u8::from(broken)))
}

fn document(findings: &[Finding]) -> Value {
    let one = |f: &Finding| json!({ "what": f.what, "grade": f.grade.name(), "found": f.found, "remedy": f.remedy });
    json!({
        "farsight": report::json::INTERFACE_VERSION,
        "kind": "doctor",
        "findings": findings.iter().map(one).collect::<Vec<_>>(),
    })
}

fn table(findings: &[Finding]) -> String {
    let mut out = String::new();
    for f in findings {
        out.push_str(&format!("{:<5} {}: {}\n", f.grade.name(), f.what, f.found));
        if !f.remedy.is_empty() {
            out.push_str(&format!("      {}\n", f.remedy));
        }
    }
    out
}

impl Grade {
    fn name(self) -> &'static str {
        match self {
            Grade::Good => "ok",
            Grade::Fair => "fair",
            Grade::Bad => "no",
        }
    }
}

fn good(what: &'static str, found: impl Into<String>) -> Finding {
    Finding { what, grade: Grade::Good, found: found.into(), remedy: String::new() }
}

fn processor() -> Finding {
    const WHAT: &str = "processor";
    if !std::arch::is_x86_feature_detected!("sse4.2") {
        return Finding {
            what: WHAT,
            grade: Grade::Bad,
            found: "lacks SSE4.2".into(),
            remedy: "growth and count need a processor of 2009 or later".into(),
        };
    }
    let wide = [
        ("AVX", std::arch::is_x86_feature_detected!("avx")),
        ("AVX2", std::arch::is_x86_feature_detected!("avx2")),
        ("AVX-512", std::arch::is_x86_feature_detected!("avx512f")),
    ];
    let wide: Vec<&str> = wide.into_iter().filter(|w| w.1).map(|w| w.0).collect();
    good(WHAT, format!("SSE4.2{}{}", if wide.is_empty() { "" } else { ", " }, wide.join(", ")))
}

fn kernel() -> Finding {
    let release = first_line("/proc/sys/kernel/osrelease").unwrap_or_else(|| "unknown".into());
    let mut numbers = release.split(['.', '-']).map_while(|n| n.parse::<u32>().ok());
    let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if version >= (5, 9) {
        return good("kernel", format!("Linux {release}"));
    }
    Finding {
        what: "kernel",
        grade: Grade::Bad,
        found: format!("Linux {release}"),
        remedy: "growth and count need Linux 5.9 or later (FSGSBASE)".into(),
    }
}

/// The engine enters programs through ptrace: their own child, which every setting below 2 allows.
fn tracing() -> Finding {
    const WHAT: &str = "tracing of own programs";
    let scope = first_line("/proc/sys/kernel/yama/ptrace_scope").and_then(|s| s.parse::<u32>().ok());
    match scope {
        None => good(WHAT, "not restricted"),
        Some(n @ 0..=1) => good(WHAT, format!("allowed (kernel.yama.ptrace_scope = {n})")),
        Some(n) => Finding {
            what: WHAT,
            grade: if n == 2 { Grade::Fair } else { Grade::Bad },
            found: format!("kernel.yama.ptrace_scope = {n}"),
            remedy: match n {
                2 => "growth and count then need root; or: sudo sysctl kernel.yama.ptrace_scope=1",
                _ => "growth and count cannot run until a reboot with kernel.yama.ptrace_scope=1",
            }
            .into(),
        },
    }
}

/// Runs the engine on a program that is on every machine.
fn engine() -> Finding {
    const WHAT: &str = "engine (growth, count)";
    let command = [OsString::from("true")];
    let spec = Spec {
        command: &command,
        blob: runtimes::COUNT,
        flags: 0,
        fixed_bytes: wire::count::FIXED_BYTES,
        prepare: &counts::prepare,
        duration: None,
    };
    match launch::run(&spec) {
        Ok(outcome) if outcome.ended == launch::Ended::Code(0) => {
            let instructions = counts::read(&outcome.results).totals.instructions;
            good(WHAT, format!("ran `true`, {instructions} instructions"))
        }
        Ok(outcome) => Finding {
            what: WHAT,
            grade: Grade::Bad,
            found: format!("`true` ended with status {} under it", outcome.ended.shell_code()),
            remedy: "please report this with your processor, kernel and distribution".into(),
        },
        Err(error) => Finding {
            what: WHAT,
            grade: Grade::Bad,
            found: error.to_string(),
            remedy: "in a container, allow ptrace: docker run --cap-add=SYS_PTRACE".into(),
        },
    }
}

fn sampling() -> Finding {
    const WHAT: &str = "perf events (causal, idle)";
    let level = first_line("/proc/sys/kernel/perf_event_paranoid").and_then(|s| s.parse::<i32>().ok());
    match level {
        Some(n @ ..=2) => good(WHAT, format!("kernel.perf_event_paranoid = {n}")),
        Some(n) => Finding {
            what: WHAT,
            grade: Grade::Fair,
            found: format!("kernel.perf_event_paranoid = {n}: timers are used instead, which cost more"),
            remedy: "sudo sysctl kernel.perf_event_paranoid=2".into(),
        },
        None => Finding {
            what: WHAT,
            grade: Grade::Fair,
            found: "this kernel has none: timers are used instead, which cost more".into(),
            remedy: String::new(),
        },
    }
}

fn cores() -> Finding {
    let n = thread::available_parallelism().map_or(1, usize::from);
    match n {
        1 => Finding {
            what: "cores",
            grade: Grade::Fair,
            found: "1".into(),
            remedy: "causal, idle and span say little about parallelism on one core".into(),
        },
        n => good("cores", n.to_string()),
    }
}

fn debug_files() -> Finding {
    const WHAT: &str = "debug information of libraries";
    let folder = Path::new(symbols::DEBUG_FOLDER).join(".build-id");
    if fs::read_dir(&folder).is_ok_and(|mut entries| entries.next().is_some()) {
        return good(WHAT, format!("installed in {}", symbols::DEBUG_FOLDER));
    }
    Finding {
        what: WHAT,
        grade: Grade::Fair,
        found: "not installed: functions have names, but no source lines".into(),
        remedy: "on Debian: sudo apt-get install libc6-dbg (and other -dbg or -dbgsym packages)".into(),
    }
}

fn first_line(path: &str) -> Option<String> {
    fs::read_to_string(path).ok()?.lines().next().map(|line| line.trim().to_owned())
}
