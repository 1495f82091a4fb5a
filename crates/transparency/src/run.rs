//! One run of one command: its own process group, files for its output, a time limit, and what a user would see of it.
//!
//! Output goes to files, not pipes: a grandchild that outlives the program then cannot keep the harness waiting. The
//! working directory is made anew for every run under the same name, so that programs that print it agree.

use std::collections::hash_map::DefaultHasher;
use std::fs::{self, File, OpenOptions};
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

/// What to run.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// Program and arguments.
    pub command: Vec<String>,
    /// Standard input.
    pub stdin: Vec<u8>,
    /// Variables beside the fixed ones.
    pub env: Vec<(String, String)>,
    /// Emptied before the run, compared after it.
    pub directory: PathBuf,
    /// Natively run in `directory` before, by `bash -e`.
    pub setup: Option<String>,
    /// Time limit.
    pub limit: Duration,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Exit status.
    Exit(i32),
    /// Killed by a signal; whether a core was dumped.
    Signal(i32, bool),
    /// Killed by us after the time limit.
    TimeLimit(Duration),
}

/// What a user would see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// Standard output.
    pub stdout: Vec<u8>,
    /// Standard error.
    pub stderr: Vec<u8>,
    /// How it ended.
    pub ended: Ended,
    /// Files left in the working directory, by path, with permissions; links by their target.
    pub files: Vec<(PathBuf, u32, Vec<u8>)>,
}

/// The whole environment of every run; nothing of the harness's own gets through.
fn environment(directory: &Path) -> Vec<(String, String)> {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let home = std::env::var("HOME").unwrap_or_else(|_| "/".into());
    vec![
        ("PATH".into(), path),
        ("HOME".into(), home),
        ("LC_ALL".into(), "C.UTF-8".into()),
        ("TZ".into(), "UTC".into()),
        ("TMPDIR".into(), temporary(directory).display().to_string()),
    ]
}

/// A folder for temporary files, one for each working directory, with a short name: sockets are bound in it, and their
/// paths may not exceed 107 bytes.
fn temporary(directory: &Path) -> PathBuf {
    let mut hash = DefaultHasher::new();
    directory.hash(&mut hash);
    std::env::temp_dir().join(format!("fs-{:08x}", hash.finish() as u32))
}

/// How often a running child is looked at: short against a start-up of milliseconds, cheap against a second.
const POLL: Duration = Duration::from_millis(2);

impl Invocation {
    /// Runs it once.
    pub fn run(&self) -> io::Result<Seen> {
        for dir in [self.directory.clone(), temporary(&self.directory)] {
            match fs::remove_dir_all(&dir) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => fs::create_dir_all(&dir)?,
            }
        }
        if let Some(script) = &self.setup {
            let status = Command::new("bash")
                .args(["-e", "-c", script])
                .current_dir(&self.directory)
                .env_clear()
                .envs(environment(&self.directory))
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .status()?;
            if !status.success() {
                return Err(io::Error::other(format!("setup failed: {status}")));
            }
        }
        let [out, err, input] = ["out", "err", "in"].map(|e| self.directory.with_extension(e));
        fs::write(&input, &self.stdin)?;
        let create = |p: &Path| OpenOptions::new().create(true).write(true).truncate(true).open(p);
        // By path, always: std starts a bare name by fork and exec but a path by posix_spawn, and the two leave different
        // signal dispositions behind.
        let program = on_path(&self.command[0]).unwrap_or_else(|| self.command[0].clone().into());
        let mut child = Command::new(program)
            .arg0(&self.command[0])
            .args(&self.command[1..])
            .env_clear()
            .envs(environment(&self.directory))
            .envs(self.env.iter().map(|(k, v)| (k, v)))
            .current_dir(&self.directory)
            .stdin(File::open(&input)?)
            .stdout(create(&out)?)
            .stderr(create(&err)?)
            .process_group(0)
            .spawn()?;
        let group = Pid::from_raw(child.id() as i32);
        let _running = Running::note(group);
        let start = Instant::now();
        let ended = loop {
            if let Some(status) = child.try_wait()? {
                break match status.signal() {
                    Some(s) => Ended::Signal(s, status.core_dumped()),
                    None => Ended::Exit(status.code().unwrap_or(-1)),
                };
            }
            if start.elapsed() > self.limit {
                // The group is ours: we made it. It may be gone already.
                let _ = killpg(group, Signal::SIGKILL);
                child.wait()?;
                break Ended::TimeLimit(self.limit);
            }
            std::thread::sleep(POLL);
        };
        // Whatever the program left running in its group ends with the case.
        let _ = killpg(group, Signal::SIGKILL);
        // What was just killed may still be on its way out; the next run empties the folder again.
        let _ = fs::remove_dir_all(temporary(&self.directory));
        let mut files = Vec::new();
        collect(&self.directory, &self.directory, &mut files)?;
        files.sort();
        Ok(Seen { stdout: fs::read(out)?, stderr: fs::read(err)?, ended, files })
    }
}

/// The process groups of runs in progress: a harness that is interrupted takes them with it.
static RUNNING: Mutex<Vec<Pid>> = Mutex::new(Vec::new());

struct Running(Pid);

impl Running {
    fn note(group: Pid) -> Running {
        RUNNING.lock().unwrap_or_else(|e| e.into_inner()).push(group);
        Running(group)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.lock().unwrap_or_else(|e| e.into_inner()).retain(|g| *g != self.0);
    }
}

/// Ends every run in progress. For an interrupted harness, just before it exits.
pub fn end_all() {
    for group in RUNNING.lock().unwrap_or_else(|e| e.into_inner()).iter() {
        let _ = killpg(*group, Signal::SIGKILL);
    }
}

/// Where a command is found: itself when it names a path, else the first match on `PATH`.
pub fn on_path(command: &str) -> Option<PathBuf> {
    let is_file = |p: &PathBuf| p.metadata().is_ok_and(|m| m.is_file());
    if command.contains('/') {
        return Some(PathBuf::from(command)).filter(is_file);
    }
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(command)).find(is_file)
}

fn collect(root: &Path, dir: &Path, into: &mut Vec<(PathBuf, u32, Vec<u8>)>) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let meta = fs::symlink_metadata(&path)?;
        let mode = meta.permissions().mode();
        let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
        if meta.is_symlink() {
            into.push((name, mode, fs::read_link(&path)?.into_os_string().into_encoded_bytes()));
        } else if meta.is_dir() {
            into.push((name, mode, Vec::new()));
            collect(root, &path, into)?;
        } else if meta.is_file() {
            into.push((name, mode, fs::read(&path)?));
        } else {
            into.push((name, mode, Vec::new()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(text: &str, limit_ms: u64) -> Seen {
        let dir = tempfile::tempdir().unwrap();
        Invocation {
            command: ["bash", "-c", text].map(String::from).to_vec(),
            stdin: b"in\n".to_vec(),
            env: vec![("X".into(), "y".into())],
            directory: dir.path().join("work"),
            setup: None,
            limit: Duration::from_millis(limit_ms),
        }
        .run()
        .unwrap()
    }

    #[test]
    fn everything_a_user_would_see() {
        let seen = shell("cat; echo $X >&2; echo f > file; ln -s file link; exit 3", 20_000);
        assert_eq!((seen.stdout.as_slice(), seen.stderr.as_slice()), (&b"in\n"[..], &b"y\n"[..]));
        assert_eq!(seen.ended, Ended::Exit(3));
        let names: Vec<_> = seen.files.iter().map(|f| f.0.to_str().unwrap()).collect();
        assert_eq!(names, ["file", "link"]);
    }

    #[test]
    fn a_signal_is_not_a_status() {
        assert!(matches!(shell("kill -TERM $$", 20_000).ended, Ended::Signal(15, _)));
    }

    #[test]
    fn the_time_limit_ends_the_whole_group() {
        let seen = shell("sleep 1000 & echo $!; wait", 300);
        assert!(matches!(seen.ended, Ended::TimeLimit(_)));
        let pid: i32 = String::from_utf8(seen.stdout).unwrap().trim().parse().unwrap();
        // Killed; at most a zombie until its new parent reaps it.
        let gone = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(10));
            fs::read_to_string(format!("/proc/{pid}/stat")).map_or(true, |s| s.contains(") Z "))
        });
        assert!(gone, "sleep {pid} still runs");
    }
}
