//! A complete, small profiler: samples every thread and writes the calling contexts of the run.
//!
//! ```text
//! FARSIGHT_CCT=out.txt LD_PRELOAD=libcct.so program
//! FARSIGHT_CCT_PERIOD_NS (default 1000000), FARSIGHT_CCT_BACKEND=timer, FARSIGHT_CCT_WEIGHED=1
//! ```
//! The file has a header line `backend ... taken ...`, then one line per context with samples: their number,
//! their CPU time if weighed, and the path `main;f;g`. Names come from the dynamic symbol table: this is a demonstration
//! of the sampler, which by itself deals in addresses only.

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::*};
use preload::arena::Arena;
use preload::{AfterFork, Ending, Hooks, Interest, Origin, Thread, process, thread};
use sampler::tree::{NodeId, ROOT, Tree};
use sampler::{Backend, Config, Path, Sample, Sampled, Stop, ThreadSampler, module};
use std::ffi::{CStr, CString};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt;

const DEPTH_MAX: usize = 1024;

struct Profiler;

struct Local {
    sampler: ThreadSampler,
    tree: Tree<2>,
    path: UnsafeCell<Path<DEPTH_MAX>>,
    stops: [AtomicU64; 6],
    frames: AtomicU64,
    backends: [AtomicU64; 3],
}

static ARENA: Arena = Arena::new();
static WEIGHED: AtomicUsize = AtomicUsize::new(0);
static BACKEND: AtomicUsize = AtomicUsize::new(0);

impl Hooks for Profiler {
    type Local = Local;
    const INTEREST: Interest = Interest::NONE;

    fn new_local() -> Local {
        Local {
            sampler: ThreadSampler::new(),
            tree: Tree::new(),
            path: UnsafeCell::new(Path::new()),
            stops: Default::default(),
            frames: AtomicU64::new(0),
            backends: Default::default(),
        }
    }

    fn start() -> bool {
        if std::env::var_os("FARSIGHT_CCT").is_none() || ARENA.reserve(1 << 30).is_err() {
            return false;
        }
        let number = |name| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
        let wanted = match std::env::var("FARSIGHT_CCT_BACKEND").as_deref() {
            Ok("timer") => Backend::Timer,
            _ => Backend::Perf,
        };
        WEIGHED.store(number("FARSIGHT_CCT_WEIGHED").unwrap_or(0) as usize, Relaxed);
        let period_ns = number("FARSIGHT_CCT_PERIOD_NS").unwrap_or(1_000_000);
        match sampler::install::<Self>(Config { period_ns, backend: wanted }) {
            Ok(backend) => BACKEND.store(backend as usize, Relaxed),
            Err(reason) => {
                process::complain(reason);
                return false;
            }
        }
        true
    }

    fn thread_started(thread: &Thread<Local>, _: Origin) {
        let backend = thread.local().sampler.start();
        thread.local().backends[backend as usize].fetch_add(1, Relaxed);
    }

    fn thread_ended(thread: &Thread<Local>) {
        thread.local().sampler.stop();
    }

    fn forked(_: Option<&Thread<Local>>) -> AfterFork {
        thread::for_each::<Self>(|thread| thread.local().sampler.forked());
        AfterFork::Leave
    }

    fn unloading(closed: bool) {
        if closed { module::closed() } else { module::closing() }
    }

    fn ending(_: Ending) {
        if let Some(thread) = thread::known::<Local>() {
            thread.busy(write_profile);
        }
    }
}

impl Sampled for Profiler {
    fn sampler(local: &Local) -> &ThreadSampler {
        &local.sampler
    }

    fn sample(thread: &Thread<Local>, sample: &mut Sample) {
        let local = thread.local();
        // SAFETY: the buffer is used here alone, by the thread that owns it, and samples do not nest.
        let path = unsafe { &mut *local.path.get() };
        let stop = path.take(sample);
        local.stops[stop as usize].fetch_add(1, Relaxed);
        local.frames.fetch_add(path.keys().len() as u64, Relaxed);
        let node = path.node(&local.tree, &ARENA, ROOT);
        local.tree.add_metric(node, 0, 1);
        if WEIGHED.load(Relaxed) != 0 {
            local.tree.add_metric(node, 1, sample.cpu_ns());
        }
    }
}

fn write_profile() {
    let Some(path) = std::env::var_os("FARSIGHT_CCT") else { return };
    let (mut taken, mut missed, mut skipped, mut refused, mut frames, mut nodes) = (0, 0, 0, 0, 0, 0);
    let (mut stops, mut backends) = ([0; 6], [0; 3]);
    let mut lines = String::new();
    thread::for_each_slot::<Profiler>(|thread| {
        let local = thread.local();
        taken += local.sampler.taken();
        missed += local.sampler.missed();
        skipped += local.sampler.skipped();
        refused += local.tree.refused();
        frames += local.frames.load(Relaxed);
        nodes += local.tree.len();
        for (sum, stop) in stops.iter_mut().zip(&local.stops) {
            *sum += stop.load(Relaxed);
        }
        for (sum, count) in backends.iter_mut().zip(&local.backends) {
            *sum += count.load(Relaxed);
        }
        for id in 0..local.tree.len() {
            let Some(node) = local.tree.node(NodeId(id)) else { continue };
            let [count, cpu_ns] = node.metrics();
            if count > 0 {
                let _ = writeln!(lines, "{count} {cpu_ns} {}", names(&local.tree, id));
            }
        }
    });
    let backend = ["none", "perf", "timer"][BACKEND.load(Relaxed).min(2)];
    let mut text = format!(
        "backend {backend} taken {taken} missed {missed} skipped {skipped} refused {refused} frames {frames} \
         nodes {nodes} root {} noinfo {} unreadable {} lost {} unloading {} cut {} perf-threads {} \
         timer-threads {}\n",
        stops[Stop::Root as usize],
        stops[Stop::NoInfo as usize],
        stops[Stop::Unreadable as usize],
        stops[Stop::Lost as usize],
        stops[Stop::Unloading as usize],
        stops[Stop::Visitor as usize],
        backends[Backend::Perf as usize],
        backends[Backend::Timer as usize],
    );
    module::for_each(|module| {
        let state = if module.is_gone() { "gone" } else { "there" };
        let id: String = module.build_id().iter().map(|byte| format!("{byte:02x}")).collect();
        let path = String::from_utf8_lossy(module.path());
        let _ = writeln!(
            text,
            "module {} {state} {:x}-{:x} {id} {path}",
            module.serial(),
            module.start,
            module.end
        );
    });
    text.push_str(&lines);
    let _ = std::fs::write(&path, text).map_err(|error| {
        let name = String::from_utf8_lossy(path.as_bytes()).into_owned();
        process::complain(&format!("cannot write {name}: {error}"));
    });
}

/// The path to a node, the outermost frame first.
fn names(tree: &Tree<2>, id: u32) -> String {
    let mut frames = Vec::new();
    let mut at = id;
    while at != 0 {
        let Some(node) = tree.node(NodeId(at)) else { break };
        let key = sampler::unwind::Key(node.key());
        frames.push(name(key.pc() - !key.is_exact() as u64));
        at = node.parent().0;
    }
    frames.reverse();
    frames.join(";")
}

fn name(pc: u64) -> String {
    // SAFETY: plain data; any address may be asked for, and names live as long as their library, which is
    // still loaded if it is found.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(pc as *const _, &mut info) != 0 && !info.dli_sname.is_null() {
            return CString::from(CStr::from_ptr(info.dli_sname)).to_string_lossy().into_owned();
        }
        if !info.dli_fname.is_null() {
            let file = CStr::from_ptr(info.dli_fname).to_string_lossy();
            let file = file.rsplit('/').next().unwrap_or("?");
            return format!("{file}+{:x}", pc - info.dli_fbase as u64);
        }
    }
    format!("?{pc:x}")
}

preload::interpose!(Profiler);
