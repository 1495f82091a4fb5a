//! Calls whose arguments mean something else for each command: fcntl, prctl, futex, System V control calls, seccomp, keyctl,
//! quotactl.

use crate::limits::ELEMENTS_MAX;
use crate::visit::Visit;

pub(crate) fn fcntl(v: &mut Visit) {
    let arg = v.arg(2);
    match v.arg(1) & 0xffff_ffff {
        5 | 36 => {
            v.read(arg, 32); // F_GETLK, F_OFD_GETLK
            v.write(arg, 32);
        }
        6 | 7 | 37 | 38 => v.read(arg, 32), // F_SETLK[W], F_OFD_SETLK[W]
        15 => v.read(arg, 8),               // F_SETOWN_EX
        16 | 17 => v.write(arg, 8),         // F_GETOWN_EX, F_GETOWNER_UIDS
        1035 | 1037 => v.write(arg, 8),     // F_GET_[FILE_]RW_HINT
        1036 | 1038 => v.read(arg, 8),      // F_SET_[FILE_]RW_HINT
        _ => {}
    }
}

pub(crate) fn prctl(v: &mut Visit) {
    let arg = v.arg(1);
    match v.arg(0) & 0xffff_ffff {
        2 | 5 | 9 | 11 | 19 | 25 | 37 => v.write(arg, 4), // PDEATHSIG, UNALIGN, FPEMU, FPEXC, ENDIAN, TSC, SUBREAPER
        15 => v.string(arg),                              // PR_SET_NAME
        16 => v.write(arg, 16),                           // PR_GET_NAME
        22 if arg == 2 => program(v, v.arg(2)),           // PR_SET_SECCOMP, filter
        40 => v.write(arg, 8),                            // PR_GET_TID_ADDRESS
        62 if arg == 0 => v.write(v.arg(4), 8),           // PR_SCHED_CORE_GET
        0x4155_5856 => v.write(arg, v.arg(2)),            // PR_GET_AUXV
        0x5356_4d41 => v.string(v.arg(4)),                // PR_SET_VMA name
        _ => {}
    }
}

pub(crate) fn arch_prctl(v: &mut Visit) {
    // GET_GS and GET_FS, XCOMP_SUPP and PERM, SHSTK_STATUS
    if matches!(v.arg(0), 0x1003 | 0x1004 | 0x1021 | 0x1022 | 0x1024 | 0x5005) {
        v.write(v.arg(1), 8);
    }
}

pub(crate) fn futex(v: &mut Visit) {
    let (word, timeout, second) = (v.arg(0), v.arg(3), v.arg(4));
    match v.arg(1) & 127 {
        0 | 9 | 11 => {
            v.read(word, 4); // WAIT, WAIT_BITSET, WAIT_REQUEUE_PI
            v.read(timeout, 16);
        }
        4 => v.read(word, 4), // CMP_REQUEUE
        5 => {
            v.read(second, 4); // WAKE_OP
            v.write(second, 4);
        }
        6 | 13 => {
            v.read(word, 4); // LOCK_PI, LOCK_PI2
            v.write(word, 4);
            v.read(timeout, 16);
        }
        7 | 8 => {
            v.read(word, 4); // UNLOCK_PI, TRYLOCK_PI
            v.write(word, 4);
        }
        12 => {
            v.read(word, 4); // CMP_REQUEUE_PI
            v.read(second, 4);
            v.write(second, 4);
        }
        _ => {}
    }
}

/// `futex_waitv`: an array of (value 8, address 8, flags 4, reserved 4).
pub(crate) fn futex_waitv(v: &mut Visit) {
    let (array, count) = (v.arg(0), (v.arg(1) & 0xffff_ffff).min(ELEMENTS_MAX));
    v.read(array, count * 24);
    v.read(v.arg(3), 16);
    for i in 0..count {
        if let Some(word) = v.peek_u64(array.wrapping_add(i * 24 + 8)) {
            v.read(word, 4);
        }
    }
}

/// Commands of the System V calls; bit 8 is the old `IPC_64`.
const IPC_SET: u64 = 1;
const IPC_STAT: u64 = 2;
const IPC_INFO: u64 = 3;

pub(crate) fn semctl(v: &mut Visit) {
    let arg = v.arg(3);
    match v.arg(2) & 0xff {
        IPC_STAT | 18 | 20 => v.write(arg, 104),
        IPC_SET => v.read(arg, 104),
        IPC_INFO | 19 => v.write(arg, 40),
        _ => {}
    }
}

pub(crate) fn shmctl(v: &mut Visit) {
    let arg = v.arg(2);
    match v.arg(1) & 0xff {
        IPC_STAT | 13 | 15 => v.write(arg, 112),
        IPC_SET => v.read(arg, 112),
        IPC_INFO => v.write(arg, 72),
        14 => v.write(arg, 48),
        _ => {}
    }
}

pub(crate) fn msgctl(v: &mut Visit) {
    let arg = v.arg(2);
    match v.arg(1) & 0xff {
        IPC_STAT | 11 | 13 => v.write(arg, 120),
        IPC_SET => v.read(arg, 120),
        IPC_INFO | 12 => v.write(arg, 32),
        _ => {}
    }
}

pub(crate) fn seccomp(v: &mut Visit, operation: u64, arg: u64) {
    match operation {
        1 => program(v, arg),
        2 => v.read(arg, 4),
        3 => v.write(arg, 6),
        _ => {}
    }
}

/// A filter program: length (2), pointer at 8, 8 bytes an instruction.
fn program(v: &mut Visit, addr: u64) {
    v.read(addr, 16);
    if let (Some(len), Some(filter)) = (v.peek_u32(addr), v.peek_u64(addr.wrapping_add(8))) {
        v.read(filter, u64::from(len & 0xffff) * 8);
    }
}

pub(crate) fn keyctl(v: &mut Visit) {
    let (a, b, c) = (v.arg(1), v.arg(2), v.arg(3));
    match v.arg(0) & 0xffff_ffff {
        1 => v.string(a),                            // JOIN_SESSION_KEYRING
        2 => v.read(b, c),                           // UPDATE
        6 | 11 | 17 => v.write(b, v.count().min(c)), // DESCRIBE, READ, GET_SECURITY
        10 => {
            v.string(b); // SEARCH
            v.string(c);
        }
        12 => v.read(b, c),          // INSTANTIATE
        20 => v.vectors(b, c, None), // INSTANTIATE_IOV
        _ => {}
    }
}

/// Sub-commands by the second byte of the command.
pub(crate) fn quotactl(v: &mut Visit, command: u64, addr: u64) {
    match command >> 8 & 0xff_ffff {
        0x80_0004 => v.write(addr, 4),  // Q_GETFMT
        0x80_0005 => v.write(addr, 24), // Q_GETINFO
        0x80_0006 => v.read(addr, 24),  // Q_SETINFO
        0x80_0007 => v.write(addr, 72), // Q_GETQUOTA
        0x80_0008 => v.read(addr, 72),  // Q_SETQUOTA
        0x80_0009 => v.write(addr, 72), // Q_GETNEXTQUOTA
        _ => {}
    }
}
