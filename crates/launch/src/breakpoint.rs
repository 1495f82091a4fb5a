//! Counting how often a program executes an instruction, without touching its code: hardware breakpoints through
//! perf events, or uprobes where those are refused.
//!
//! The processor has four of them per thread; the kernel gives them to every thread that the program creates later.
//! A hit costs an exception (microseconds, more in a virtual machine).

use std::fs;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

/// A counter of executions of one instruction.
#[derive(Debug)]
pub struct Breakpoint {
    fd: OwnedFd,
}

/// Where the instruction is.
#[derive(Debug, Clone, Copy)]
pub struct Site<'a> {
    /// Address in the process.
    pub address: u64,
    /// The file it was loaded from, and its place there.
    pub file: &'a Path,
    /// Offset in the file.
    pub offset: u64,
}

const PERF_TYPE_BREAKPOINT: u32 = 5;
const HW_BREAKPOINT_X: u32 = 4;
const ATTR_INHERIT: u64 = 1 << 1;
const ATTR_EXCLUDE_KERNEL: u64 = 1 << 5;
const ATTR_EXCLUDE_HV: u64 = 1 << 6;
const PERF_FLAG_FD_CLOEXEC: usize = 8;
const UPROBE_TYPE: &str = "/sys/bus/event_source/devices/uprobe/type";

/// The kernel's `struct perf_event_attr`, version 1 (72 bytes), which every kernel knows.
#[repr(C)]
struct Attr {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    config1: u64,
    config2: u64,
}

impl Breakpoint {
    /// Counts executions by the process (every thread that it has now or creates later).
    pub fn open(pid: u32, site: &Site<'_>) -> io::Result<Breakpoint> {
        let mut attr = Attr {
            kind: PERF_TYPE_BREAKPOINT,
            size: size_of::<Attr>() as u32,
            config: 0,
            sample_period: 0,
            sample_type: 0,
            read_format: 0,
            flags: ATTR_INHERIT | ATTR_EXCLUDE_KERNEL | ATTR_EXCLUDE_HV,
            wakeup_events: 0,
            bp_type: HW_BREAKPOINT_X,
            config1: site.address,
            config2: size_of::<libc::c_long>() as u64,
        };
        let refused = match event(&attr, pid) {
            Ok(fd) => return Ok(Breakpoint { fd }),
            Err(e) => e,
        };
        let Some(kind) = fs::read_to_string(UPROBE_TYPE).ok().and_then(|text| text.trim().parse().ok())
        else {
            return Err(refused);
        };
        let path = std::ffi::CString::new(site.file.as_os_str().as_encoded_bytes())?;
        attr.kind = kind;
        attr.bp_type = 0;
        attr.config1 = path.as_ptr() as u64;
        attr.config2 = site.offset;
        event(&attr, pid).map(|fd| Breakpoint { fd }).map_err(|_| refused)
    }

    /// Executions so far.
    pub fn count(&self) -> u64 {
        let mut value = 0u64;
        // SAFETY: reads eight bytes into a live word; the event's format is the bare count.
        let read = unsafe { libc::read(self.fd.as_raw_fd(), (&raw mut value).cast(), 8) };
        if read == 8 { value } else { 0 }
    }
}

fn event(attr: &Attr, pid: u32) -> io::Result<OwnedFd> {
    // SAFETY: the attribute is live, says its own size, and the path it may point to outlives the call.
    let fd = unsafe {
        libc::syscall(libc::SYS_perf_event_open, &raw const *attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC)
    };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: a descriptor that was just made and that nothing else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as i32) })
}
