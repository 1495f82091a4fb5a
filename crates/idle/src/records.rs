//! The shared file of a run, as bytes of doubtful origin.
//!
//! Layouts are those of `wire::idle`; fields are read by their offsets, and whatever lies outside of the file, or
//! in a list longer than any that the runtime makes, ends the reading there.

use std::mem::offset_of;
use wire::idle::{
    self, CHUNKS, COMMAND_BYTES, COMMAND_OFFSET, Executed as ExecutedRecord, FIRST_CHUNK, Header, Lock,
    METRICS, Module, Node, PROGRAM_BYTES, PROGRAM_OFFSET, Slot, executed,
};

/// Records of one kind at most.
const RECORDS_MAX: usize = 1 << 20;

/// Why a file cannot be read at all.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// The runtime never ran.
    #[error(
        "the program did not load the idleness runtime: it may be static, set-user-id, or have started another \
         program at once; profile that program itself"
    )]
    NotStarted,
    /// Another version wrote it.
    #[error("the idleness runtime is of another version")]
    Version,
}

/// A file.
#[derive(Clone, Copy)]
pub(crate) struct File<'a> {
    bytes: &'a [u8],
    /// Address of the file in the program.
    base: u64,
}

macro_rules! field {
    ($file:expr, $at:expr, $type:ident.$field:ident, u64) => {
        $file.u64($at + offset_of!($type, $field) as u64)
    };
    ($file:expr, $at:expr, $type:ident.$field:ident, u32) => {
        $file.u32($at + offset_of!($type, $field) as u64)
    };
}

/// What the header says.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Head {
    pub cores: u64,
    pub period_ns: u64,
    pub working: u64,
    pub now_ns: u64,
    pub effort: u64,
    pub start_ns: u64,
    pub start_cpu_ns: u64,
    pub nobody_ns: u64,
    pub pool: u64,
    pub threads: u64,
    pub backend: u32,
    pub problems: u64,
    pub ended: u32,
    pub end_ns: u64,
    pub end_cpu_ns: u64,
    pub start_process_cpu_ns: u64,
}

/// A program that the profiled one has executed, or meant to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Executed {
    /// Its path as it was given.
    pub path: Vec<u8>,
    /// To be looked for in `PATH`.
    pub searched: bool,
    /// Its environment did not lead to us, so that it was not profiled.
    pub cut_off: bool,
}

/// What a process that is followed says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Introduced {
    /// Path of the executable.
    pub program: Vec<u8>,
    /// Its arguments, its own name first.
    pub command: Vec<Vec<u8>>,
    /// `CLOCK_MONOTONIC` when its profile began; 0 before.
    pub started_ns: u64,
}

/// Who a process is that is followed, by the first page of its file or all of it; `None` before it has said so.
pub fn introduced(bytes: &[u8]) -> Option<Introduced> {
    let file = File { bytes, base: 0 };
    let text = |offset: u64, most: usize, len: u32| {
        let at = offset as usize;
        bytes.get(at..at + (len as usize).min(most)).unwrap_or_default()
    };
    if field!(file, 0, Header.asked, u32) == 0 {
        return None;
    }
    let program = text(PROGRAM_OFFSET, PROGRAM_BYTES, field!(file, 0, Header.program_len, u32));
    let command = text(COMMAND_OFFSET, COMMAND_BYTES, field!(file, 0, Header.command_len, u32));
    let command = command.strip_suffix(&[0]).unwrap_or(command);
    Some(Introduced {
        program: program.to_vec(),
        command: command.split(|b| *b == 0).map(<[u8]>::to_vec).collect(),
        started_ns: field!(file, 0, Header.start_ns, u64),
    })
}

/// One thread's record with its nodes.
pub(crate) struct Tree {
    pub index: u32,
    pub state: u32,
    pub last_node: u32,
    pub claimed: u64,
    pub pending: u64,
    pub claimed_ns: u64,
    pub pending_ns: u64,
    pub preempted: i64,
    pub cpu_ns: u64,
    pub samples: u64,
    pub cut: u64,
    pub stitched: u64,
    pub orphans: u64,
    pub refused: u64,
    pub waiting_since: u64,
    pub nodes: Vec<Node>,
}

/// A module.
#[derive(Debug, Clone)]
pub(crate) struct Loaded {
    pub serial: u32,
    pub bias: u64,
    pub path: String,
}

impl<'a> File<'a> {
    pub fn open(bytes: &'a [u8]) -> Result<File<'a>, RecordError> {
        let mut file = File { bytes, base: 0 };
        let magic = field!(file, 0, Header.magic, u64);
        let version = field!(file, 0, Header.version, u32);
        if magic != idle::MAGIC || version != wire::VERSION {
            return Err(RecordError::Version);
        }
        file.base = field!(file, 0, Header.base, u64);
        if file.base == 0 { Err(RecordError::NotStarted) } else { Ok(file) }
    }

    fn u64(&self, at: u64) -> u64 {
        let read =
            |at: usize| Some(u64::from_le_bytes(self.bytes.get(at..at.checked_add(8)?)?.try_into().ok()?));
        usize::try_from(at).ok().and_then(read).unwrap_or(0)
    }

    fn u32(&self, at: u64) -> u32 {
        self.u64(at) as u32
    }

    pub fn head(&self) -> Head {
        let now = field!(self, 0, Header.effort_now, u64);
        Head {
            cores: u64::from(field!(self, 0, Header.cores, u32)).max(1),
            period_ns: field!(self, 0, Header.period_ns, u64),
            working: now >> 48,
            now_ns: now & ((1 << 48) - 1),
            effort: field!(self, 0, Header.effort_sum, u64),
            start_ns: field!(self, 0, Header.start_ns, u64),
            start_cpu_ns: field!(self, 0, Header.start_cpu_ns, u64),
            nobody_ns: field!(self, 0, Header.nobody_ns, u64),
            pool: field!(self, 0, Header.pool, u64),
            threads: field!(self, 0, Header.threads, u64),
            backend: field!(self, 0, Header.backend, u32),
            problems: field!(self, 0, Header.problems, u64),
            ended: field!(self, 0, Header.ended, u32),
            end_ns: field!(self, 0, Header.end_ns, u64),
            end_cpu_ns: field!(self, 0, Header.end_cpu_ns, u64),
            start_process_cpu_ns: field!(self, 0, Header.start_process_cpu_ns, u64),
        }
    }

    pub fn executed(&self) -> Vec<Executed> {
        let records = self.list(field!(self, 0, Header.executed, u64), offset_of!(ExecutedRecord, next));
        let found = records.into_iter().map(|at| {
            let len = (field!(self, at, ExecutedRecord.path_len, u32) as usize).min(256);
            let path = at as usize + offset_of!(ExecutedRecord, path);
            let flags = field!(self, at, ExecutedRecord.flags, u32);
            Executed {
                path: self.bytes.get(path..path + len).unwrap_or_default().to_vec(),
                searched: flags & executed::SEARCHED != 0,
                cut_off: flags & executed::CUT_OFF != 0,
            }
        });
        found.collect()
    }

    /// Offsets of a list's records.
    fn list(&self, first: u64, next: usize) -> Vec<u64> {
        let mut found = Vec::new();
        let mut at = first;
        while at != 0 && at < self.bytes.len() as u64 && found.len() < RECORDS_MAX {
            found.push(at);
            at = self.u64(at + next as u64);
        }
        found
    }

    pub fn modules(&self) -> Vec<Loaded> {
        let records = self.list(field!(self, 0, Header.modules, u64), offset_of!(Module, next));
        let loaded = records.into_iter().map(|at| {
            let len = (field!(self, at, Module.path_len, u32) as usize).min(256);
            let path = at as usize + offset_of!(Module, path);
            let path = self.bytes.get(path..path + len).unwrap_or_default();
            Loaded {
                serial: field!(self, at, Module.serial, u32),
                bias: field!(self, at, Module.bias, u64),
                path: String::from_utf8_lossy(path).into_owned(),
            }
        });
        loaded.collect()
    }

    pub fn trees(&self) -> Vec<Tree> {
        let records = self.list(field!(self, 0, Header.slots, u64), offset_of!(Slot, next));
        let mut trees: Vec<Tree> = records
            .into_iter()
            .map(|at| Tree {
                index: field!(self, at, Slot.index, u32),
                state: field!(self, at, Slot.state, u32),
                last_node: field!(self, at, Slot.last_node, u32),
                claimed: field!(self, at, Slot.claimed, u64),
                pending: field!(self, at, Slot.pending, u64),
                claimed_ns: field!(self, at, Slot.claimed_ns, u64),
                pending_ns: field!(self, at, Slot.pending_ns, u64),
                preempted: field!(self, at, Slot.preempted, u64) as i64,
                cpu_ns: field!(self, at, Slot.cpu_ns, u64),
                samples: field!(self, at, Slot.samples, u64),
                cut: field!(self, at, Slot.cut, u64),
                stitched: field!(self, at, Slot.stitched, u64),
                orphans: field!(self, at, Slot.orphans, u64),
                refused: field!(self, at, Slot.refused, u64),
                waiting_since: field!(self, at, Slot.waiting_since, u64),
                nodes: self.nodes(at),
            })
            .collect();
        trees.sort_by_key(|t| t.index);
        trees
    }

    fn nodes(&self, slot: u64) -> Vec<Node> {
        let mut left = field!(self, slot, Slot.nodes, u32);
        // No more than the file has room for, whatever it says.
        let mut nodes = Vec::with_capacity((left as usize).min(self.bytes.len() / size_of::<Node>()));
        for k in 0..CHUNKS {
            let chunk = self.u64(slot + (offset_of!(Slot, chunks) + 8 * k) as u64).wrapping_sub(self.base);
            let len = left.min(FIRST_CHUNK << k);
            if chunk >= self.bytes.len() as u64 {
                break;
            }
            for i in 0..u64::from(len) {
                let at = chunk + i * size_of::<Node>() as u64;
                let mut node = Node {
                    key: field!(self, at, Node.key, u64),
                    parent: field!(self, at, Node.parent, u32),
                    next: 0,
                    metrics: [0; METRICS],
                };
                for (m, metric) in node.metrics.iter_mut().enumerate() {
                    *metric = self.u64(at + (offset_of!(Node, metrics) + 8 * m) as u64);
                }
                nodes.push(node);
            }
            left -= len;
            if left == 0 {
                break;
            }
        }
        nodes
    }

    pub fn locks(&self) -> Vec<Lock> {
        let records = self.list(field!(self, 0, Header.locks, u64), offset_of!(Lock, next));
        records
            .into_iter()
            .map(|at| Lock {
                waiting_now: field!(self, at, Lock.waiting_now, u64),
                waiting_sum: field!(self, at, Lock.waiting_sum, u64),
                address: field!(self, at, Lock.address, u64),
                number: field!(self, at, Lock.number, u32),
                kind: field!(self, at, Lock.kind, u32),
                handed_over: field!(self, at, Lock.handed_over, u64),
                wait_ns: field!(self, at, Lock.wait_ns, u64),
                contended: field!(self, at, Lock.contended, u64),
                acquisitions: field!(self, at, Lock.acquisitions, u64),
                longest_ns: field!(self, at, Lock.longest_ns, u64),
                longest_at: field!(self, at, Lock.longest_at, u64),
                ..Lock::default()
            })
            .collect()
    }
}
