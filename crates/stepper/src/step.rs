//! Runs a program one instruction at a time under ptrace and counts, thread by thread.
//!
//! ```text
//! stop of a thread          what it means for the instruction it was resumed at (`next`)
//! SIGTRAP                   it was executed: count it; a rep string that stands still has only iterated
//! signal delivery           it was not executed; the signal is passed on. If a handler takes it, the kernel
//!                           stops once more at the handler's first instruction, before executing it
//! clone event, first stop   a thread was made; `next` is still being executed
//! end                       only `syscall` ends a thread from inside: that one counts
//! ```
//!
//! An executed `exit` or `exit_group` counts as one instruction: the processor retires it on the way into the kernel.
//! A system call that a signal interrupts and the kernel restarts is counted twice here (ptrace cannot tell it apart
//! from one that the program repeats): use programs that are not interrupted while they block.
//! Children made by fork run free and are not counted.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::libc;
use nix::sys::personality::{self, Persona};
use nix::sys::ptrace::{self, Options};
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::Pid;
use serde::Serialize;

use crate::classify::{Effect, classify};
use crate::trace::{self, Step};

/// Five sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Completed instructions; a repeated string instruction is one.
    pub instructions: u64,
    /// Control transfers, taken or not.
    pub blocks: u64,
    /// Memory reads by operands.
    pub loads: u64,
    /// Memory writes by operands.
    pub stores: u64,
    /// `call` instructions.
    pub calls: u64,
}

/// What a run came to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Sums over all threads.
    #[serde(flatten)]
    pub totals: Counts,
    /// Each thread's, in the order in which the kernel made them.
    pub threads: Vec<Counts>,
    /// Exit status, or 128 + signal.
    pub exit: i32,
    /// Each thread's instructions one by one, if asked for.
    #[serde(skip)]
    pub traces: Vec<Vec<Step>>,
}

#[derive(Default)]
struct Thread {
    counts: Counts,
    /// The instruction at which it was resumed; `None` when that does not decode.
    next: Option<Effect>,
    pc: u64,
    rcx: u64,
    /// For a trace: the instruction's bytes and the registers before it.
    bytes: [u8; 15],
    before: Option<libc::user_regs_struct>,
    trace: Vec<Step>,
    repeating: bool,
    /// The next SIGTRAP is the stop at a handler's entry: nothing was executed.
    at_handler: bool,
    /// Already resumed once.
    started: bool,
}

/// Runs `command` to its end, without address randomization, and counts.
pub fn run(command: &[String]) -> Result<Report> {
    run_with(Command::new, command, false)
}

/// The same with a command of the caller's making (environment, folder), and a trace of each thread.
pub fn trace(make: impl FnOnce(&str) -> Command, command: &[String]) -> Result<Report> {
    run_with(|program: &str| make(program), command, true)
}

fn run_with<'a>(
    make: impl FnOnce(&'a str) -> Command,
    command: &'a [String],
    tracing: bool,
) -> Result<Report> {
    let (program, args) = command.split_first().context("no program given")?;
    let mut child = make(program);
    child.args(args);
    // SAFETY:
    // - runs between fork and exec: both are plain system calls, no allocation, no locks.
    // - their failure is reported through the returned error, which carries an errno only.
    unsafe {
        child.pre_exec(|| {
            ptrace::traceme()?;
            let persona = personality::get()?;
            personality::set(persona | Persona::ADDR_NO_RANDOMIZE)?;
            Ok(())
        });
    }
    let child = child.spawn().with_context(|| format!("cannot start {program}"))?;
    let main = Pid::from_raw(child.id() as i32);
    match waitpid(main, None)? {
        WaitStatus::Stopped(_, Signal::SIGTRAP) => {}
        other => bail!("expected the stop after exec, got {other:?}"),
    }
    ptrace::setoptions(main, Options::PTRACE_O_TRACECLONE | Options::PTRACE_O_EXITKILL)?;
    let mut stepper = Stepper {
        memory: File::open(format!("/proc/{main}/mem"))?,
        main,
        threads: BTreeMap::new(),
        order: vec![main],
        decoded: HashMap::new(),
        tracing,
    };
    stepper.threads.insert(main, Thread::default());
    stepper.resume(main, None)?;
    stepper.all()
}

struct Stepper {
    memory: File,
    main: Pid,
    threads: BTreeMap<Pid, Thread>,
    order: Vec<Pid>,
    decoded: HashMap<[u8; 15], Option<Effect>>,
    tracing: bool,
}

impl Stepper {
    fn all(mut self) -> Result<Report> {
        loop {
            match waitpid(None, Some(WaitPidFlag::__WALL))? {
                WaitStatus::Stopped(pid, signal) => self.stopped(pid, signal)?,
                WaitStatus::PtraceEvent(pid, _, event) => {
                    if event == libc::PTRACE_EVENT_CLONE {
                        let new = Pid::from_raw(ptrace::getevent(pid)? as i32);
                        self.known(new);
                    }
                    ptrace::step(pid, None)?; // still on the way out of the same system call
                }
                WaitStatus::Exited(pid, status) => {
                    self.ended(pid);
                    if pid == self.main {
                        return Ok(self.report(status));
                    }
                }
                WaitStatus::Signaled(pid, signal, _) => {
                    if pid == self.main {
                        return Ok(self.report(128 + signal as i32));
                    }
                }
                other => bail!("unexpected wait status {other:?}"),
            }
        }
    }

    /// A new thread may be seen first by its parent's event or by its own first stop.
    fn known(&mut self, pid: Pid) {
        self.threads.entry(pid).or_insert_with(|| {
            self.order.push(pid);
            Thread::default()
        });
    }

    fn stopped(&mut self, pid: Pid, signal: Signal) -> Result<()> {
        self.known(pid);
        let thread = self.threads.get_mut(&pid).context("unknown thread")?;
        if !thread.started && pid != self.main {
            return self.resume(pid, None); // the SIGSTOP that every new thread starts with
        }
        if signal != Signal::SIGTRAP {
            thread.at_handler = caught(pid, signal)?;
            return self.resume(pid, Some(signal));
        }
        let regs = ptrace::getregs(pid)?;
        if std::mem::take(&mut thread.at_handler) {
            return self.resume(pid, None);
        }
        if let (true, Some(before)) = (self.tracing && thread.next.is_some(), &thread.before) {
            let new = trace::step(&thread.bytes, before, &regs);
            match thread.trace.last_mut() {
                Some(last) if new.repeated && thread.repeating => last.grow(&new),
                _ => thread.trace.push(new.clone()),
            }
            thread.repeating = new.repeated && regs.rip == before.rip;
        }
        if let Some(effect) = thread.next {
            if effect.rep {
                let iterations = thread.rcx.wrapping_sub(regs.rcx);
                thread.counts.loads += effect.loads * iterations;
                thread.counts.stores += effect.stores * iterations;
                thread.counts.instructions += u64::from(regs.rip != thread.pc);
            } else {
                thread.counts.add(&effect);
            }
        }
        self.resume(pid, None)
    }

    /// Notes what is at the thread's pc and lets it execute that.
    fn resume(&mut self, pid: Pid, signal: Option<Signal>) -> Result<()> {
        let regs = ptrace::getregs(pid)?;
        let mut bytes = [0; 15];
        // Near the end of a mapping fewer can be read; the rest stays zero and does not matter.
        let mut got = 0;
        while got < bytes.len() {
            match self.memory.read_at(&mut bytes[got..], regs.rip + got as u64) {
                Ok(n) if n > 0 => got += n,
                _ => break,
            }
        }
        let effect = *self.decoded.entry(bytes).or_insert_with(|| classify(&bytes[..got], regs.rip));
        let thread = self.threads.get_mut(&pid).context("unknown thread")?;
        (thread.next, thread.pc, thread.rcx, thread.started) = (effect, regs.rip, regs.rcx, true);
        if self.tracing {
            (thread.bytes, thread.before) = (bytes, Some(regs));
        }
        match ptrace::step(pid, signal) {
            // Gone between stop and step: another thread ended the process. Its end is reported by wait.
            Err(nix::errno::Errno::ESRCH) => Ok(()),
            other => Ok(other?),
        }
    }

    fn ended(&mut self, pid: Pid) {
        if let Some(thread) = self.threads.get_mut(&pid)
            && let Some(effect) = thread.next.take()
            && effect.syscall
        {
            thread.counts.add(&effect);
        }
    }

    fn report(&self, exit: i32) -> Report {
        let threads: Vec<Counts> =
            self.order.iter().filter_map(|p| self.threads.get(p)).map(|t| t.counts).collect();
        let mut totals = Counts::default();
        for t in &threads {
            totals.instructions += t.instructions;
            totals.blocks += t.blocks;
            totals.loads += t.loads;
            totals.stores += t.stores;
            totals.calls += t.calls;
        }
        let traces = self.order.iter().filter_map(|p| self.threads.get(p)).map(|t| t.trace.clone()).collect();
        Report { totals, threads, exit, traces }
    }
}

impl Counts {
    fn add(&mut self, effect: &Effect) {
        self.instructions += 1;
        self.blocks += u64::from(effect.block);
        self.calls += u64::from(effect.call);
        self.loads += effect.loads;
        self.stores += effect.stores;
    }
}

/// Whether the thread has a handler for the signal.
fn caught(pid: Pid, signal: Signal) -> Result<bool> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let mask = status
        .lines()
        .find_map(|l| l.strip_prefix("SigCgt:"))
        .and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .context("no SigCgt in /proc/PID/status")?;
    Ok(mask >> (signal as u32 - 1) & 1 == 1)
}
