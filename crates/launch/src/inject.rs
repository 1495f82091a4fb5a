//! Putting the engine into a stopped process.

use crate::blob::{self, Segment};
use crate::error::LaunchError;
use crate::own_file;
use crate::tracee::{Borrowed, Tracee};
use wire::boot::{Boot, MAGIC, Regs};
use wire::slab;

/// Addresses tried for the image and the shared mapping: far from where kernels and sanitizers put things.
const BASES: [u64; 4] = [0x2a00_0000_0000, 0x2c00_0000_0000, 0x3a00_0000_0000, 0x1a00_0000_0000];
/// Stack for the engine's first steps.
const STACK_BYTES: u64 = 256 << 10;

/// What to inject.
pub(crate) struct Injection<'a> {
    pub blob: &'a [u8],
    pub flags: u32,
    pub fixed_bytes: u64,
    pub slab_count: u64,
    /// The memory to share.
    pub memory: Memory,
    /// The memory of `wire::follow` and the number of this image, where children are followed.
    pub follow: Option<(Memory, u32)>,
}

/// How the process gets at memory of ours.
pub(crate) enum Memory {
    /// It inherited this descriptor.
    Inherited(i32),
    /// It opens this descriptor of ours.
    Open(i32),
}

/// Where the memory of `wire::follow` lies in every process.
pub(crate) const FOLLOW_BASE: u64 = BASES[0] + (3 << 40);

const NOREPLACE: u64 = 0x10_0000;

impl Injection<'_> {
    /// Maps everything and points the process at the engine. The process must be stopped before its first
    /// instruction.
    pub(crate) fn inject(&self, tracee: &Tracee) -> Result<(), LaunchError> {
        let borrowed = tracee.borrow()?;
        let (t, regs) = (&borrowed, borrowed.regs());
        let image_bytes = blob::length(self.blob)?;
        let bytes = image_bytes + 4096 + STACK_BYTES;
        let rw = (libc::PROT_READ | libc::PROT_WRITE) as u64;
        let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE) as u64;
        let base = map_somewhere(t, bytes, rw, anonymous, u64::MAX, 0)?;
        let image = blob::layout(self.blob, base)?;
        let file = self.own_file(t, base);
        for segment in &image.segments {
            place(t, base, segment, file)?;
        }
        if let Some((fd, _)) = file {
            check("close our own file", t.syscall(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?)?;
        }
        let shared = self.fixed_bytes + self.slab_count * slab::STRIDE;
        let flags = (libc::MAP_SHARED | libc::MAP_NORESERVE) as u64;
        let boot_at = base + image_bytes;
        let fd = self.memory.descriptor(t, boot_at)?;
        let shared_base = map_somewhere(t, shared, rw, flags, fd, 1 << 40)?;
        const DONTDUMP: u64 = 16;
        t.syscall(libc::SYS_madvise, [shared_base, shared, DONTDUMP, 0, 0, 0])?;
        check("close the shared memory", t.syscall(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?)?;
        let mut follow = (0, 0);
        if let Some((memory, number)) = &self.follow {
            let fd = memory.descriptor(t, boot_at)?;
            let a = [FOLLOW_BASE, wire::follow::BYTES, rw, flags | NOREPLACE, fd, 0];
            follow = (check("map the engine", t.syscall(libc::SYS_mmap, a)?)?, *number);
            t.syscall(libc::SYS_madvise, [FOLLOW_BASE, wire::follow::BYTES, DONTDUMP, 0, 0, 0])?;
            check("close the shared memory", t.syscall(libc::SYS_close, [fd, 0, 0, 0, 0, 0])?)?;
        }
        let boot = Boot {
            magic: MAGIC,
            version: wire::VERSION,
            flags: self.flags,
            regs: program_regs(&regs),
            image_base: base,
            image_bytes: bytes,
            shared_base,
            shared_fixed_bytes: self.fixed_bytes,
            slab_count: self.slab_count,
            launcher_pid: std::process::id(),
            launcher_parent: std::os::unix::process::parent_id(),
            follow_base: follow.0,
            follow_image: follow.1,
            reserved: 0,
        };
        t.write(boot_at, bytes_of(&boot))?;
        let mut start = regs;
        start.rip = base + image.entry;
        start.rdi = boot_at;
        start.rsp = base + bytes - 64 - 8;
        start.eflags = 0x202;
        start.orig_rax = u64::MAX;
        borrowed.give_back()?;
        tracee.set_regs(&start)
    }

    /// A descriptor in the process for the file that holds the blob, and the blob's offset there. `None` where the
    /// process cannot open it (another root, too many files): then everything is written.
    fn own_file(&self, t: &Borrowed<'_>, scratch: u64) -> Option<(u64, u64)> {
        let offset = own_file::offset_of(self.blob)?;
        let path = format!("/proc/{}/exe\0", std::process::id());
        let fd = open(t, scratch, "open our own file", &path, libc::O_RDONLY).ok()?;
        Some((fd, offset))
    }
}

/// Puts a segment in its place: mapped where it is as in the file (a descriptor in the process, and where the blob
/// begins), written where not.
fn place(
    t: &Borrowed<'_>,
    base: u64,
    segment: &Segment<'_>,
    file: Option<(u64, u64)>,
) -> Result<(), LaunchError> {
    let (start, bytes) = segment.pages();
    let execute = if segment.executable { libc::PROT_EXEC } else { 0 };
    let prot = (libc::PROT_READ | execute) as u64;
    if let Some((fd, blob)) = file
        && let Some(offset) = segment.as_in_blob()
    {
        let fixed = (libc::MAP_PRIVATE | libc::MAP_FIXED) as u64;
        let r = t.syscall(libc::SYS_mmap, [base + start, bytes, prot, fixed, fd, blob + offset])?;
        if check("map the engine", r).is_ok() {
            return Ok(());
        }
    }
    t.write(base + segment.offset, &segment.bytes)?;
    if segment.executable {
        check(
            "make the engine executable",
            t.syscall(libc::SYS_mprotect, [base + start, bytes, prot, 0, 0, 0])?,
        )?;
    }
    Ok(())
}

/// Opens a file in the process; `path` ends with a zero. `scratch` is memory of the process that nobody needs yet.
fn open(
    t: &Borrowed<'_>,
    scratch: u64,
    what: &'static str,
    path: &str,
    how: i32,
) -> Result<u64, LaunchError> {
    t.write(scratch, path.as_bytes())?;
    let how = (how | libc::O_CLOEXEC) as u64;
    check(what, t.syscall(libc::SYS_open, [scratch, how, 0, 0, 0, 0])?)
}

impl Memory {
    /// The descriptor in the process. `scratch` is memory of the process that nobody needs yet.
    fn descriptor(&self, t: &Borrowed<'_>, scratch: u64) -> Result<u64, LaunchError> {
        let fd = match self {
            Memory::Inherited(fd) => return Ok(*fd as u64),
            Memory::Open(fd) => fd,
        };
        let path = format!("/proc/{}/fd/{fd}\0", std::process::id());
        open(t, scratch, "open the shared memory", &path, libc::O_RDWR)
    }
}

fn bytes_of(b: &Boot) -> &[u8] {
    // SAFETY: a live `repr(C)` value without padding between its fields.
    unsafe { std::slice::from_raw_parts(std::ptr::from_ref(b).cast(), size_of::<Boot>()) }
}

fn check(what: &'static str, result: i64) -> Result<u64, LaunchError> {
    if (-4095..0).contains(&result) {
        let cause = std::io::Error::from_raw_os_error(-result as i32);
        return Err(LaunchError::System { what, cause, hint: " (in the program)" });
    }
    Ok(result as u64)
}

fn map_somewhere(
    t: &Borrowed<'_>,
    bytes: u64,
    prot: u64,
    flags: u64,
    fd: u64,
    shift: u64,
) -> Result<u64, LaunchError> {
    let mut last = Ok(0);
    for base in BASES {
        let a = [base + shift, bytes, prot, flags | NOREPLACE, fd, 0];
        last = check("map the engine", t.syscall(libc::SYS_mmap, a)?);
        if let Ok(at) = last {
            return Ok(at);
        }
    }
    last
}

fn program_regs(r: &libc::user_regs_struct) -> Regs {
    Regs {
        gpr: [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13,
            r.r14, r.r15,
        ],
        rip: r.rip,
        rflags: r.eflags,
    }
}
