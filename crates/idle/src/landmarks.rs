//! Finding the code that the runtime must recognize while the program runs.
//!
//! For rayon: the functions that run a job which was taken from somewhere else, with the register in which each
//! keeps the job's address, and the function in which a worker looks for work. The register is read from the
//! code: a job that is needed after a call must survive it, so the compiler moves it from `rdi` to a preserved
//! register (or to the stack, in which case its creator cannot be found this way). That is checked anew for each
//! executable, since it is the compiler's choice.

use iced_x86::{Decoder, DecoderOptions, Mnemonic, OpKind, Register};
use symbols::{AddrRange, Object};
use wire::idle::{LANDMARKS_MAX, Landmark, landmark};

/// How far into a function the move is looked for.
const PROLOGUE_BYTES: u64 = 512;

/// What was found.
#[derive(Debug, Clone, Default)]
pub struct Landmarks {
    /// Sorted by address, not overlapping.
    pub list: Vec<Landmark>,
    /// What will not work, one sentence each.
    pub problems: Vec<String>,
}

/// The landmarks of an executable. `is_idle` names further functions in which a thread looks for work.
pub fn landmarks(object: &Object, is_idle: impl Fn(&str) -> bool) -> Landmarks {
    let mut found = Landmarks::default();
    let (mut jobs, mut unknown) = (0u32, 0u32);
    for (range, _) in object.entries() {
        let Some(function) = object.function_at(range.start) else { continue };
        if function.entry != range.start {
            continue;
        }
        let name = function.name.readable();
        let Some(kind) = kind_of(name, &is_idle) else { continue };
        let mut register = 0;
        if kind != landmark::IDLE {
            jobs += 1;
            register = match job_register(object, range) {
                Some(register) => register,
                None => {
                    unknown += 1;
                    u32::MAX
                }
            };
        }
        let (start, end) = (range.start.0, range.end.0);
        found.list.push(Landmark { start, end, kind, register, reserved: 0 });
    }
    found.list.sort_by_key(|l| l.start);
    found.list.dedup_by_key(|l| l.start);
    if found.list.len() as u64 > LANDMARKS_MAX {
        found.list.truncate(LANDMARKS_MAX as usize);
        found
            .problems
            .push("more kinds of rayon jobs than can be told apart: some keep their physical path".into());
    }
    if unknown > 0 {
        found.problems.push(format!(
            "of {unknown} of {jobs} kinds of rayon jobs the compiler keeps no address in a register: their stolen \
             jobs stand below the function that made them, not below its callers"
        ));
    }
    found
}

fn kind_of(name: &str, is_idle: &impl Fn(&str) -> bool) -> Option<u32> {
    let runs = |job: &str| name.contains(job) && name.ends_with("::execute");
    if name.contains("rayon_core") {
        if runs("job::StackJob") {
            return Some(landmark::STACK_JOB);
        }
        if runs("job::HeapJob") || runs("job::ArcJob") {
            return Some(landmark::HEAP_JOB);
        }
        if name.ends_with("WorkerThread::wait_until_cold") || name.ends_with("WorkerThread>::wait_until_cold")
        {
            return Some(landmark::IDLE);
        }
    }
    is_idle(name).then_some(landmark::IDLE)
}

/// DWARF number of the preserved register that the first argument is moved to.
fn job_register(object: &Object, function: AddrRange) -> Option<u32> {
    let end = function.end.0.min(function.start.0 + PROLOGUE_BYTES);
    let bytes = object.bytes_of(AddrRange::new(function.start.0, end));
    let mut decoder = Decoder::with_ip(64, &bytes, function.start.0, DecoderOptions::NONE);
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let moves = instruction.mnemonic() == Mnemonic::Mov
            && instruction.op0_kind() == OpKind::Register
            && instruction.op1_kind() == OpKind::Register
            && instruction.op1_register() == Register::RDI;
        if moves {
            match instruction.op0_register() {
                Register::RBX => return Some(3),
                Register::RBP => return Some(6),
                Register::R12 => return Some(12),
                Register::R13 => return Some(13),
                Register::R14 => return Some(14),
                Register::R15 => return Some(15),
                _ => {}
            }
        }
        if instruction.is_call_near() || instruction.is_call_near_indirect() {
            // From here on `rdi` is somebody else's.
            return None;
        }
    }
    None
}

/// What is wanted of the runtime.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    /// Cores to reckon with.
    pub cores: u32,
    /// CPU time between two samples of a thread.
    pub period_ns: u64,
    /// To do without perf.
    pub timer_only: bool,
    /// libomp stands in for libgomp.
    pub libomp: bool,
    /// The landmarks are there already: the runtime need not wait for them.
    pub go: bool,
}

/// The beginning of the shared file, for the runtime to find.
pub fn prepare(wanted: &Wanted, landmarks: &[Landmark]) -> Vec<u8> {
    use std::mem::offset_of;
    use wire::idle::{Header, LANDMARKS_OFFSET, MAGIC};
    let mut file = vec![0; LANDMARKS_OFFSET as usize];
    let mut put = |at: usize, bytes: &[u8]| file[at..at + bytes.len()].copy_from_slice(bytes);
    put(offset_of!(Header, magic), &MAGIC.to_le_bytes());
    put(offset_of!(Header, version), &wire::VERSION.to_le_bytes());
    put(offset_of!(Header, cores), &wanted.cores.to_le_bytes());
    put(offset_of!(Header, period_ns), &wanted.period_ns.to_le_bytes());
    put(offset_of!(Header, timer_only), &u32::from(wanted.timer_only).to_le_bytes());
    put(offset_of!(Header, libomp), &u64::from(wanted.libomp).to_le_bytes());
    put(offset_of!(Header, landmarks), &(landmarks.len() as u32).to_le_bytes());
    put(offset_of!(Header, go), &u32::from(wanted.go).to_le_bytes());
    file.extend(landmark_bytes(landmarks));
    file
}

/// Landmarks as the runtime finds them in the file.
pub fn landmark_bytes(landmarks: &[Landmark]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(size_of_val(landmarks));
    for l in landmarks {
        bytes.extend(l.start.to_le_bytes());
        bytes.extend(l.end.to_le_bytes());
        bytes.extend(l.kind.to_le_bytes());
        bytes.extend(l.register.to_le_bytes());
        bytes.extend(l.reserved.to_le_bytes());
    }
    bytes
}
