//! Calls that make processes, look into them, or hand work to the kernel to finish later.

use crate::Access;
use crate::limits::ELEMENTS_MAX;
use crate::visit::Visit;

const CLONE_VM: u64 = 0x100;
const CLONE_PIDFD: u64 = 0x1000;
const CLONE_PARENT_SETTID: u64 = 0x10_0000;
const CLONE_CHILD_SETTID: u64 = 0x0100_0000;

/// `clone(flags, stack, parent_tid, child_tid, tls)`, as the parent returns from it. The child's tid is stored in the
/// child's memory: seen here when it is shared.
pub(crate) fn clone(v: &mut Visit) {
    let flags = v.arg(0);
    if flags & (CLONE_PARENT_SETTID | CLONE_PIDFD) != 0 {
        v.write(v.arg(2), 4);
    }
    if flags & CLONE_CHILD_SETTID != 0 && (flags & CLONE_VM != 0 || v.call.result == 0) {
        v.write(v.arg(3), 4);
    }
}

/// `clone3(args, size)`: flags 0, pidfd 8, child_tid 16, parent_tid 24, ..., set_tid 64, its count 72.
pub(crate) fn clone3(v: &mut Visit) {
    let args = v.arg(0);
    v.read(args, v.arg(1));
    let at = |v: &Visit, offset| v.peek_u64(args.wrapping_add(offset)).unwrap_or(0);
    let flags = at(v, 0);
    for (flag, offset) in [(CLONE_PIDFD, 8), (CLONE_PARENT_SETTID, 24)] {
        if flags & flag != 0 {
            v.write(at(v, offset), 4);
        }
    }
    if flags & CLONE_CHILD_SETTID != 0 && (flags & CLONE_VM != 0 || v.call.result == 0) {
        v.write(at(v, 16), 4);
    }
    if v.arg(1) >= 80 {
        v.read(at(v, 64), at(v, 72).min(ELEMENTS_MAX) * 4);
    }
}

pub(crate) fn ptrace(v: &mut Visit) {
    let (addr, data) = (v.arg(2), v.arg(3));
    match v.arg(0) & 0xffff_ffff {
        1..=3 => v.write(data, 8),                // PEEKTEXT, PEEKDATA, PEEKUSER
        12 => v.write(data, 216),                 // GETREGS
        13 => v.read(data, 216),                  // SETREGS
        14 => v.write(data, 512),                 // GETFPREGS
        15 => v.read(data, 512),                  // SETFPREGS
        0x4201 => v.write(data, 8),               // GETEVENTMSG
        0x4202 => v.write(data, 128),             // GETSIGINFO
        0x4203 => v.read(data, 48),               // SETSIGINFO
        0x4204 => vector(v, data, Access::Write), // GETREGSET
        0x4205 => vector(v, data, Access::Read),  // SETREGSET
        0x4209 => {
            v.read(addr, 16); // PEEKSIGINFO
            v.write(data, v.count() * 128);
        }
        0x420a => v.write(data, addr),                // GETSIGMASK
        0x420b => v.read(data, addr),                 // SETSIGMASK
        0x420e => v.write(data, v.count().min(addr)), // GET_SYSCALL_INFO
        _ => {}
    }
}

/// One `iovec` whose length the kernel corrects.
fn vector(v: &mut Visit, addr: u64, access: Access) {
    v.read(addr, 16);
    if let (Some(base), Some(len)) = (v.peek_u64(addr), v.peek_u64(addr.wrapping_add(8)))
        && v.ok()
    {
        v.emit(base, len, access);
        v.write(addr.wrapping_add(8), 8);
    }
}

/// iocb: data 0, key 8, rw_flags 12, opcode 16 (2), ..., buf 24, nbytes 32.
const IOCB_BYTES: u64 = 64;
const PREAD: u32 = 0;
const PREADV: u32 = 7;

/// The control blocks that were taken, and what they will write from.
pub(crate) fn io_submit(v: &mut Visit) {
    let (array, count) = (v.arg(2), v.count().min(ELEMENTS_MAX));
    v.read(array, v.arg(1).min(ELEMENTS_MAX) * 8);
    for i in 0..count {
        let Some(iocb) = v.peek_u64(array.wrapping_add(i * 8)) else { break };
        v.read(iocb, IOCB_BYTES);
        v.write(iocb.wrapping_add(8), 4);
        let opcode = v.peek_u32(iocb.wrapping_add(16)).unwrap_or(u32::MAX) & 0xffff;
        let at = |v: &Visit, offset| v.peek_u64(iocb.wrapping_add(offset)).unwrap_or(0);
        match opcode {
            1 => v.read(at(v, 24), at(v, 32)), // PWRITE
            8 => v.vectors(at(v, 24), at(v, 32), Some((Access::Read, u64::MAX))), // PWRITEV
            7 => v.vectors(at(v, 24), at(v, 32), None), // PREADV
            _ => {}
        }
    }
}

/// Events, and what their operations wrote before: io_event is data 0, iocb 8, result 16, result2 24.
pub(crate) fn io_getevents(v: &mut Visit) {
    let (events, count) = (v.arg(3), v.count().min(ELEMENTS_MAX));
    v.write(events, count * 32);
    v.read(v.arg(4), 16);
    for i in 0..count {
        let event = events.wrapping_add(i * 32);
        let (Some(iocb), Some(done)) = (v.peek_u64(event + 8), v.peek_u64(event + 16)) else { break };
        if (done as i64) < 0 {
            continue;
        }
        let opcode = v.peek_u32(iocb.wrapping_add(16)).unwrap_or(u32::MAX) & 0xffff;
        let at = |v: &Visit, offset| v.peek_u64(iocb.wrapping_add(offset)).unwrap_or(0);
        match opcode {
            PREAD => v.write(at(v, 24), done),
            PREADV => v.vectors(at(v, 24), at(v, 32), Some((Access::Write, done))),
            _ => {}
        }
    }
}
