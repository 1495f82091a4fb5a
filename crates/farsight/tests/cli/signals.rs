//! What is sent to `farsight` is meant for the program, and the program gets what `farsight` got.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::farsight::Folder;

/// Prints `ready`, then a line for each signal; ends after SIGTERM. `perl` is one process: nothing else gets the signal.
const LISTENER: &str = r#"
    $| = 1;
    for my $s (qw(HUP INT QUIT USR1 USR2 ALRM CONT TERM)) { $SIG{$s} = sub { print "$s\n"; exit 3 if $s eq "TERM"; }; }
    print "ready\n";
    sleep 1 while 1;
"#;

fn farsight(program: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farsight"));
    command.args(["count", "-q", "-o", "/dev/null", "--"]).args(program).process_group(0);
    command
}

struct Job {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Job {
    fn start(program: &[&str]) -> Job {
        let mut child = farsight(program).stdout(Stdio::piped()).spawn().expect("farsight starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut job = Job { child, lines };
        assert_eq!(job.line(), "ready");
        job
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    fn send(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([format!("-{signal}"), pid]).status().expect("kill").success());
    }

    /// The letter that says what the process is doing.
    fn state(pid: u32) -> char {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('X')
    }

    fn program(&self) -> u32 {
        let pid = self.child.id();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).expect("children");
        children.trim().parse().expect("one child")
    }

    fn until(what: &str, done: impl Fn() -> bool) {
        for _ in 0..2000 {
            if done() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("{what} did not happen");
    }
}

#[test]
fn signals_reach_the_program_once() {
    let mut job = Job::start(&["perl", "-e", LISTENER]);
    for signal in ["HUP", "INT", "QUIT", "USR1", "USR2", "ALRM"] {
        job.send(signal);
        assert_eq!(job.line(), signal);
    }
    job.send("TERM");
    assert_eq!(job.line(), "TERM");
    let mut rest = String::new();
    job.lines.read_to_string(&mut rest).expect("the end");
    assert_eq!(rest, "");
    assert_eq!(job.child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn a_deadly_signal_kills_the_program_and_we_say_so() {
    let mut job = Job::start(&["sh", "-c", "echo ready; exec sleep 1000"]);
    job.send("TERM");
    assert_eq!(job.child.wait().expect("it ends").code(), Some(128 + 15));
}

#[test]
fn the_job_stops_and_continues_as_one() {
    let mut job = Job::start(&["perl", "-e", LISTENER]);
    let (ours, program) = (job.child.id(), job.program());
    job.send("TSTP");
    Job::until("both stop", || Job::state(ours) == 'T' && Job::state(program) == 'T');
    job.send("CONT");
    assert_eq!(job.line(), "CONT");
    Job::until("both go on", || Job::state(ours) != 'T' && Job::state(program) != 'T');
    job.send("TERM");
    assert_eq!(job.line(), "TERM");
    assert_eq!(job.child.wait().expect("it ends").code(), Some(3));
}

#[test]
fn the_program_does_not_survive_us() {
    let mut job = Job::start(&["perl", "-e", LISTENER]);
    let program = job.program();
    job.child.kill().expect("killed");
    assert_eq!(job.child.wait().expect("it ends").signal(), Some(9));
    Job::until("the program ends", || matches!(Job::state(program), 'Z' | 'X'));
}

#[test]
fn dispositions_streams_and_alarms_are_inherited() {
    let ask = r#"print join(" ", map { "$_=" . ($SIG{$_} // "default") } qw(PIPE HUP CHLD)), "\n";"#;
    let farsight = env!("CARGO_BIN_EXE_farsight");
    let shell = |script: &str| {
        let out = Command::new("bash").args(["-c", script, "bash", farsight, ask]).output().expect("bash");
        (String::from_utf8(out.stdout).expect("UTF-8"), out.status)
    };
    let run = r#""$1" count -q -o /dev/null -- perl -e "$2""#;
    // Whatever runs this test may ignore signals itself: the native run says what is right.
    assert_eq!(shell(run).0, shell(r#"perl -e "$2""#).0);
    let ignoring = |command: &str| shell(&format!("trap '' PIPE HUP; {command}")).0;
    assert_eq!(ignoring(run), ignoring(r#"perl -e "$2""#));
    let closed =
        r#""$1" count -q -o /dev/null -- sh -c '[ -e /proc/self/fd/0 ] && echo open || echo closed' <&-"#;
    assert_eq!(shell(closed).0, "closed\n");
    let alarm = r#"perl -e 'alarm 1; exec @ARGV' "$1" count -q -o /dev/null -- sleep 1000"#;
    assert_eq!(shell(alarm).1.code(), Some(128 + 14));
}

#[test]
fn what_cannot_be_run_is_said_before_it_runs() {
    let folder = crate::farsight::Folder::new();
    let script = |name: &str, text: &str, mode: u32| {
        use std::os::unix::fs::PermissionsExt;
        let path = folder.path(name);
        std::fs::write(&path, text).expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("mode");
    };
    script("lost", "#!/no/such/interpreter\n", 0o755);
    let lost = folder.run(&["count", "--", "./lost"]).exits(66);
    lost.says(&["./lost: its interpreter /no/such/interpreter is not there"]);
    script("plain", "echo plain $1\n", 0o755);
    folder.run(&["count", "-q", "-o", "/dev/null", "--", "./plain", "x"]).exits(0).prints(&["plain x"]);
    script("mine", "#!/bin/sh\nexit 4\n", 0o755);
    folder.run(&["count", "-q", "-o", "/dev/null", "--", "./mine"]).exits(4);
    script("dull", "data", 0o644);
    folder.run(&["count", "-o", "/dev/null", "--", "./dull"]).exits(66).says(&["Permission denied"]);
}

/// A program that has a signal waiting whenever a handler returns gets on all the same. (Without the rule of
/// `engine/src/respite.rs` it never ends; how fast it is here does not matter.)
#[test]
fn a_program_gets_on_under_timers_that_strike_faster_than_they_are_handled() {
    let folder = Folder::new();
    let program = folder.path("storm");
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/storm.c");
    let gcc = Command::new("gcc").args(["-O1", "-pthread", "-o"]).arg(&program).arg(source).status();
    assert!(gcc.expect("gcc starts").success());
    for mode in ["count", "growth"] {
        let ended = folder.run(&[mode, "-q", "--no-summary", "-o", "/dev/null", "--", "./storm"]).exits(0);
        assert_eq!(ended.stdout, "bad 0\n", "{mode}");
    }
}
