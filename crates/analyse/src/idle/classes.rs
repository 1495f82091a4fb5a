//! What a frame is, by its name: the program's own code, a runtime's, or neither.
//!
//! Overhead is recognized after the fact, from names, at no cost while the program runs. A sample's class is that of
//! the innermost frame that has one: code of libraries that serve anybody (`memcpy`, iterators) has its caller's.
//!
//! Users add rules of their own, which go first. A line of such a file is a class and a pattern, `*` standing for
//! anything:
//! ```text
//! sync      my_spin_lock*
//! schedule  my_pool::*
//! idle      my_pool::Worker::wait*
//! work      rayon_core::*          overrides what we know
//! neutral   libutil.so:*           in any function of that library
//! ```

use profile::idle::{Frame, FrameKind};

/// What time spent in a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// The program's own code.
    Work,
    /// Overhead: locks, conditions, atomics' slow paths.
    Sync,
    /// Overhead: making, moving and finding tasks and threads.
    Schedule,
    /// Looking or waiting for work.
    Idle,
    /// Code without a class of its own, and shown: `malloc`, `memcpy`.
    Neutral,
    /// Likewise, and not shown: start-up code, closures' calls, iterators.
    Glue,
}

/// A rule: what a pattern means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// In functions' names; before a colon that is not doubled, in the object's file name.
    pattern: String,
    class: Class,
}

/// The rules, the first that matches counts.
#[derive(Debug, Clone, Default)]
pub struct Classes {
    own: Vec<Rule>,
}

/// A line that is no rule.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: `{text}` is no rule; write: sync|schedule|idle|neutral|glue|work PATTERN")]
pub struct BadRule {
    line: usize,
    text: String,
}

const WORDS: [(&str, Class); 6] = [
    ("work", Class::Work),
    ("sync", Class::Sync),
    ("schedule", Class::Schedule),
    ("idle", Class::Idle),
    ("neutral", Class::Neutral),
    ("glue", Class::Glue),
];

/// What we know. Patterns are of names without leading `<`, `&`, `_` and spaces.
const KNOWN: &[(&str, Class)] = &[
    // looking for work
    ("rayon_core::registry::WorkerThread::wait_until*", Class::Idle),
    ("rayon_core::registry::WorkerThread>::wait_until*", Class::Idle),
    ("rayon_core::registry::WorkerThread::find_work*", Class::Idle),
    // The same where debug information names no types (`{impl#2}`), or nothing but lines.
    ("rayon_core::registry::{impl#*}::wait_until*", Class::Idle),
    ("rayon_core::registry::{impl#*}::find_work*", Class::Idle),
    ("rayon_core::registry::wait_until*", Class::Idle),
    ("rayon_core::registry::find_work*", Class::Idle),
    ("rayon_core::sleep::no_work_found*", Class::Idle),
    ("rayon_core::sleep::sleep*", Class::Idle),
    ("rayon_core::registry::main_loop*", Class::Idle),
    ("rayon_core::sleep::Sleep::sleep*", Class::Idle),
    ("rayon_core::sleep::Sleep::no_work_found*", Class::Idle),
    ("rayon_core::latch::LockLatch::wait*", Class::Idle),
    ("crossbeam_deque::deque::Stealer*", Class::Idle),
    ("gomp_team_barrier_wait*", Class::Idle),
    ("gomp_barrier_wait*", Class::Idle),
    ("gomp_simple_barrier_wait*", Class::Idle),
    ("gomp_thread_start", Class::Idle),
    ("kmp_fork_barrier*", Class::Idle),
    ("kmp_join_barrier*", Class::Idle),
    ("kmp_barrier*", Class::Idle),
    ("kmp_hyper_barrier*", Class::Idle),
    ("kmp_wait_template*", Class::Idle),
    ("kmp_execute_tasks*", Class::Idle),
    ("bool __kmp_wait*", Class::Idle),
    ("int __kmp_execute_tasks*", Class::Idle),
    ("kmpc_barrier", Class::Idle),
    ("tokio::runtime::park::*::park*", Class::Idle),
    ("tokio::runtime::scheduler::multi_thread::park::*", Class::Idle),
    ("tokio::runtime::scheduler::*steal_work*", Class::Idle),
    ("tokio::runtime::scheduler::*::park*", Class::Idle),
    ("tokio::runtime::driver::*::park*", Class::Idle),
    ("tokio::runtime::blocking::pool::*run*", Class::Idle),
    ("tbb::*::wait_for_work*", Class::Idle),
    ("tbb::*receive_or_steal_task*", Class::Idle),
    // synchronization
    ("pthread_mutex_*", Class::Sync),
    ("pthread_rwlock_*", Class::Sync),
    ("pthread_cond_*", Class::Sync),
    ("pthread_spin_*", Class::Sync),
    ("pthread_barrier_*", Class::Sync),
    ("pthread_once*", Class::Sync),
    ("lll_lock_*", Class::Sync),
    ("lll_*", Class::Sync),
    ("sem_wait*", Class::Sync),
    ("sem_post*", Class::Sync),
    ("new_sem_*", Class::Sync),
    ("futex_*", Class::Sync),
    ("mtx_*", Class::Sync),
    ("cnd_*", Class::Sync),
    ("std::mutex::*", Class::Sync),
    ("std::condition_variable::*", Class::Sync),
    ("std::shared_mutex::*", Class::Sync),
    ("std::atomic*wait*", Class::Sync),
    ("std::sync::*", Class::Sync),
    ("std::sys::sync::*", Class::Sync),
    ("std::sys::*futex*", Class::Sync),
    ("parking_lot*", Class::Sync),
    ("lock_api::*", Class::Sync),
    ("crossbeam_channel::*", Class::Sync),
    ("crossbeam_utils::*", Class::Sync),
    ("tokio::sync::*", Class::Sync),
    ("GOMP_critical*", Class::Sync),
    ("GOMP_atomic*", Class::Sync),
    ("GOMP_ordered*", Class::Sync),
    ("gomp_mutex*", Class::Sync),
    ("omp_set_lock*", Class::Sync),
    ("omp_unset_lock*", Class::Sync),
    ("kmpc_critical*", Class::Sync),
    ("kmpc_end_critical*", Class::Sync),
    ("kmp_acquire*lock*", Class::Sync),
    ("kmp_release*lock*", Class::Sync),
    ("tbb::*mutex*", Class::Sync),
    // scheduling
    ("rayon_core::*", Class::Schedule),
    ("rayon::iter::plumbing::*", Class::Schedule),
    ("rayon::*", Class::Schedule),
    ("crossbeam_deque::*", Class::Schedule),
    ("crossbeam_epoch::*", Class::Schedule),
    ("GOMP_*", Class::Schedule),
    ("gomp_*", Class::Schedule),
    ("libgomp.so*:*", Class::Schedule),
    ("kmp*", Class::Schedule),
    ("libomp.so*:*", Class::Schedule),
    ("libiomp5.so*:*", Class::Schedule),
    ("tbb::*", Class::Schedule),
    ("libtbb.so*:*", Class::Schedule),
    ("tokio::runtime::*", Class::Schedule),
    ("tokio::task::*", Class::Schedule),
    ("tokio::time::*", Class::Schedule),
    ("tokio::loom::*", Class::Schedule),
    ("tokio::util::*", Class::Schedule),
    ("tokio::macros::*", Class::Glue),
    ("tokio::*", Class::Neutral),
    ("mio::*", Class::Schedule),
    ("async_executor::*", Class::Schedule),
    ("async_task::*", Class::Schedule),
    ("futures_executor::*", Class::Schedule),
    ("futures_util::*", Class::Glue),
    ("futures_core::*", Class::Glue),
    ("pthread_create*", Class::Schedule),
    ("pthread_join*", Class::Schedule),
    ("pthread_exit*", Class::Schedule),
    ("allocate_stack*", Class::Schedule),
    ("sched_yield", Class::Schedule),
    ("std::thread::spawn*", Class::Schedule),
    ("std::thread::Builder*", Class::Schedule),
    // start-up and ways through libraries
    (".omp_outlined*", Class::Glue),
    (".omp_task_entry*", Class::Glue),
    ("start_thread", Class::Glue),
    ("clone3", Class::Glue),
    ("clone", Class::Glue),
    ("start", Class::Glue),
    ("libc_start_*", Class::Glue),
    ("main", Class::Work),
    ("std::*", Class::Glue),
    ("core::*", Class::Glue),
    ("alloc::*", Class::Glue),
    ("impl *core::*", Class::Glue),
    ("ld-linux*:*", Class::Neutral),
    ("libc.so*:*", Class::Neutral),
    ("libm.so*:*", Class::Neutral),
    ("libpthread.so*:*", Class::Neutral),
    ("libgcc_s.so*:*", Class::Neutral),
    // Where std::thread starts; without symbols it has the library's name.
    ("execute_native_thread_routine*", Class::Glue),
    ("libstdc++.so*:libstdc++.so*", Class::Glue),
    ("libstdc++.so*:*", Class::Neutral),
    ("operator new*", Class::Neutral),
    ("operator delete*", Class::Neutral),
];

/// Runtimes that are headers, by parts of their files' paths: compilers name inlined functions without namespaces.
const HEADERS: &[(&str, Class)] = &[
    ("/tbb/*mutex", Class::Sync),
    ("/include/tbb/", Class::Schedule),
    ("/oneapi/tbb/", Class::Schedule),
    ("/include/c++/*mutex", Class::Sync),
    ("/include/c++/*unique_lock.h", Class::Sync),
    ("/include/c++/*condition_variable", Class::Sync),
    ("/include/c++/*atomic_wait.h", Class::Sync),
    ("/include/c++/*semaphore", Class::Sync),
    ("/include/c++/*barrier", Class::Sync),
    ("/include/c++/*latch", Class::Sync),
    ("/include/c++/*thread", Class::Schedule),
    ("/include/c++/*future", Class::Schedule),
    ("/include/c++/", Class::Glue),
];

/// Functions of runtimes that are compiled into the program with its closures inlined. Without debug information
/// their time cannot be told from the closures', and is taken for work.
const HOLLOW: &[&str] = &[
    "rayon_core::join::*",
    "rayon_core::job::*execute*",
    "rayon_core::scope::*",
    "rayon_core::registry::Registry::in_worker*",
    "rayon_core::registry::Registry>::in_worker*",
    "rayon_core::thread_pool::*",
    "rayon_core::spawn*",
    "rayon::*",
    "std::thread::local::LocalKey*",
    "std::sys::backtrace*",
    "core::*",
    "alloc::*",
];

impl Classes {
    /// Rules of the user's own before ours.
    pub fn parse(text: &str) -> Result<Classes, BadRule> {
        let mut own = Vec::new();
        for (i, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let rule = line.split_once(char::is_whitespace).and_then(|(word, pattern)| {
                let class = WORDS.iter().find(|w| w.0 == word)?.1;
                Some(Rule { pattern: pattern.trim().to_owned(), class })
            });
            own.push(rule.ok_or_else(|| BadRule { line: i + 1, text: line.to_owned() })?);
        }
        Ok(Classes { own })
    }

    /// Patterns of the user's own for a class.
    pub fn own_patterns(&self, class: Class) -> impl Iterator<Item = &str> {
        self.own.iter().filter(move |r| r.class == class).map(|r| r.pattern.as_str())
    }

    /// What a frame is.
    pub fn of(&self, frame: &Frame) -> Class {
        match frame.kind {
            FrameKind::Spin => return Class::Idle,
            FrameKind::Task => return Class::Glue,
            FrameKind::Loop | FrameKind::Thread | FrameKind::Wait | FrameKind::Other => {
                return Class::Neutral;
            }
            FrameKind::Call | FrameKind::Inline => {}
        }
        let object = frame.object.rsplit('/').next().unwrap_or_default();
        if let Some(rule) = self.own.iter().find(|r| matches(&r.pattern, &frame.name, object)) {
            return rule.class;
        }
        let name = bare(&frame.name);
        if name.starts_with("{closure#") && is_standard(&frame.file) {
            return Class::Glue;
        }
        if is_standard(&frame.file) && !KNOWN.iter().any(|(p, c)| *c == Class::Sync && glob(p, name)) {
            return Class::Glue;
        }
        if frame.file.is_empty() && HOLLOW.iter().any(|p| glob(p, name)) {
            return Class::Glue;
        }
        let known = KNOWN.iter().find(|(p, _)| matches(p, name, object)).map(|k| k.1);
        known.or_else(|| of_header(&frame.file)).unwrap_or(Class::Work)
    }
}

/// What functions of a runtime's header are.
fn of_header(file: &str) -> Option<Class> {
    let found = HEADERS.iter().find(|(part, _)| {
        let (folder, name) = part.split_once('*').unwrap_or((part, ""));
        file.split_once(folder).is_some_and(|(_, rest)| rest.contains(name))
    });
    found.map(|f| f.1)
}

/// Whether a source file is of Rust's standard library.
pub fn is_standard(file: &str) -> bool {
    file.starts_with("/rustc/")
        || ["/library/core/src/", "/library/alloc/src/", "/library/std/src/"].iter().any(|p| file.contains(p))
}

/// Whether a name matches a pattern.
pub fn name_matches(pattern: &str, name: &str) -> bool {
    glob(pattern, name) || glob(pattern, bare(name))
}

/// `<&mut a::B<C> as D>::e` begins with `a::B`; `___pthread_mutex_lock` is one function under many names.
fn bare(name: &str) -> &str {
    let mut name = name.trim_start_matches(['<', '&', '_', ' ']);
    while let Some(rest) = name.strip_prefix("mut ").or_else(|| name.strip_prefix("dyn ")) {
        name = rest.trim_start_matches(['<', '&', '_', ' ']);
    }
    name
}

fn matches(pattern: &str, name: &str, object: &str) -> bool {
    match split_object(pattern) {
        Some((in_object, in_name)) => glob(in_object, object) && glob(in_name, name),
        None => glob(pattern, name),
    }
}

/// `libx.so*:f*` into its halves; `a::b` has none.
fn split_object(pattern: &str) -> Option<(&str, &str)> {
    let at = pattern.find(':')?;
    if pattern[at + 1..].starts_with(':') { None } else { Some((&pattern[..at], &pattern[at + 1..])) }
}

/// Whether `text` is `pattern` with any characters for each `*`.
pub(crate) fn glob(pattern: &str, text: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == text };
    text.strip_prefix(head).is_some_and(|text| {
        rest.is_empty()
            || text.char_indices().map(|(i, _)| i).chain([text.len()]).any(|i| glob(rest, &text[i..]))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(name: &str, object: &str) -> Frame {
        Frame { name: name.into(), object: object.into(), file: "x.rs".into(), ..Frame::default() }
    }

    #[test]
    fn names_have_classes() {
        let classes = Classes::default();
        for (name, object, class) in [
            ("main", "/x/prog", Class::Work),
            ("prog::compute::{closure#0}", "/x/prog", Class::Work),
            ("___pthread_mutex_lock", "/lib/libc.so.6", Class::Sync),
            ("pthread_mutex_unlock@@GLIBC_2.2.5", "/lib/libc.so.6", Class::Sync),
            ("rayon_core::join::join_context::{closure#0}", "/x/prog", Class::Schedule),
            (
                "<rayon_core::job::StackJob<L,F,R> as rayon_core::job::Job>::execute",
                "/x/prog",
                Class::Schedule,
            ),
            ("rayon_core::registry::WorkerThread::wait_until_cold", "/x/prog", Class::Idle),
            ("<core::iter::Map<I,F> as core::iter::Iterator>::fold", "/x/prog", Class::Glue),
            ("__memmove_avx_unaligned_erms", "/lib/x86_64-linux-gnu/libc.so.6", Class::Neutral),
            (
                "tokio::runtime::scheduler::multi_thread::worker::Context::run_task",
                "/x/prog",
                Class::Schedule,
            ),
            ("tokio::runtime::scheduler::multi_thread::worker::Context::park", "/x/prog", Class::Idle),
            ("tokio::task::coop::budget", "/x/prog", Class::Schedule),
            ("tokio::net::tcp::stream::TcpStream::poll_read", "/x/prog", Class::Neutral),
            ("whatever", "/lib/libgomp.so.1", Class::Schedule),
            ("__kmp_fork_barrier(int, int)", "/lib/libomp.so.5", Class::Idle),
        ] {
            assert_eq!(classes.of(&frame(name, object)), class, "{name}");
        }
        for (file, class) in [
            ("/usr/include/oneapi/tbb/parallel_for.h", Class::Schedule),
            ("/usr/include/oneapi/tbb/spin_mutex.h", Class::Sync),
            ("/usr/include/c++/12/bits/stl_algo.h", Class::Glue),
            ("/usr/include/c++/12/bits/std_mutex.h", Class::Sync),
            ("/home/u/include/run.h", Class::Work),
        ] {
            let inlined = Frame { file: file.into(), ..frame("run", "/x/prog") };
            assert_eq!(classes.of(&inlined), class, "{file}");
        }
        let hollow = Frame { file: String::new(), ..frame("rayon_core::join::join_context", "/x/prog") };
        assert_eq!(classes.of(&hollow), Class::Glue, "without debug information it may hold the closure");
    }

    #[test]
    fn own_rules_go_first() {
        let text = "# mine\nsync spin_*\nwork libgomp.so*:good\nidle a::*::wait\n";
        let classes = Classes::parse(text).unwrap();
        assert_eq!(classes.of(&frame("spin_lock", "/x/prog")), Class::Sync);
        assert_eq!(classes.of(&frame("good", "/x/libgomp.so.1")), Class::Work);
        assert_eq!(classes.of(&frame("bad", "/x/libgomp.so.1")), Class::Schedule);
        assert_eq!(classes.own_patterns(Class::Idle).collect::<Vec<_>>(), ["a::*::wait"]);
        assert_eq!(Classes::parse("sync x\nfast y").unwrap_err().line, 2);
    }

    #[test]
    fn globs() {
        for (pattern, text, matches) in [
            ("a*", "abc", true),
            ("a*c", "abc", true),
            ("a*c", "abcd", false),
            ("a*c", "acbc", true),
            ("*", "", true),
            ("a", "ab", false),
            ("*b*", "abc", true),
            ("a*b*c", "a_b_c", true),
        ] {
            assert_eq!(glob(pattern, text), matches, "{pattern} {text}");
        }
    }
}
