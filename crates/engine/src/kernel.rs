//! Layouts of the kernel's signal structures on x86-64.

/// `struct sigaction` as `rt_sigaction` takes it.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SigAction {
    /// `SIG_DFL`, `SIG_IGN` or a function.
    pub handler: u64,
    /// Bits of [`sa`].
    pub flags: u64,
    /// Where the handler returns to.
    pub restorer: u64,
    /// Signals blocked meanwhile.
    pub mask: u64,
}

/// The default action.
pub const SIG_DFL: u64 = 0;
/// No action.
pub const SIG_IGN: u64 = 1;

/// Bits of [`SigAction::flags`].
pub mod sa {
    #![allow(missing_docs)]
    pub const SIGINFO: u64 = 4;
    pub const RESTORER: u64 = 0x0400_0000;
    pub const ONSTACK: u64 = 0x0800_0000;
    pub const RESTART: u64 = 0x1000_0000;
    pub const NODEFER: u64 = 0x4000_0000;
    pub const RESETHAND: u64 = 0x8000_0000;
    /// Those that change what the kernel does, beside calling a handler.
    pub const KERNEL: u64 = RESTART | 1 | 2;
}

/// Signal numbers.
pub mod sig {
    #![allow(missing_docs)]
    pub const ILL: u32 = 4;
    pub const TRAP: u32 = 5;
    pub const BUS: u32 = 7;
    pub const FPE: u32 = 8;
    pub const KILL: u32 = 9;
    pub const SEGV: u32 = 11;
    pub const STOP: u32 = 19;
    pub const SYS: u32 = 31;
    /// Bit of a signal in a mask.
    pub const fn bit(s: u32) -> u64 {
        1 << (s - 1)
    }
    /// Signals that instructions raise: never blocked in the kernel while the engine is in charge.
    pub const SYNC: u64 = bit(ILL) | bit(TRAP) | bit(BUS) | bit(FPE) | bit(SEGV);
    /// Signals that cannot be blocked.
    pub const UNBLOCKABLE: u64 = bit(KILL) | bit(STOP);
}

/// `siginfo_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct SigInfo {
    /// Signal number.
    pub signo: i32,
    /// Error number, mostly unused.
    pub errno: i32,
    /// Why: positive from the kernel.
    pub code: i32,
    /// Alignment.
    pub pad: i32,
    /// The rest; for faults, the first word is the address.
    pub rest: [u64; 14],
}

/// `stack_t`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stack {
    /// Lowest address.
    pub sp: u64,
    /// `SS_ONSTACK`, `SS_DISABLE`, `SS_AUTODISARM`.
    pub flags: i32,
    /// Alignment.
    pub pad: i32,
    /// Length.
    pub size: u64,
}

/// `SS_ONSTACK`.
pub const SS_ONSTACK: i32 = 1;
/// `SS_DISABLE`.
pub const SS_DISABLE: i32 = 2;
/// `SS_AUTODISARM`.
pub const SS_AUTODISARM: i32 = 1 << 31;

/// `struct ucontext` with its `sigcontext` spelled out.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct UContext {
    /// Flags of the frame.
    pub flags: u64,
    /// Unused.
    pub link: u64,
    /// The alternate stack.
    pub stack: Stack,
    /// r8 to r15.
    pub r8_15: [u64; 8],
    /// rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp.
    pub di_si_bp_bx_dx_ax_cx_sp: [u64; 8],
    /// The pc.
    pub rip: u64,
    /// The flags.
    pub rflags: u64,
    /// cs, gs, fs, ss, 16 bits each.
    pub segments: u64,
    /// Error code of a fault.
    pub err: u64,
    /// Its vector.
    pub trapno: u64,
    /// Old mask.
    pub oldmask: u64,
    /// Its address.
    pub cr2: u64,
    /// Where the floating-point and vector state lies.
    pub fpstate: u64,
    /// Unused.
    pub reserved: [u64; 8],
    /// Blocked signals to restore.
    pub mask: u64,
}

const _: () = assert!(size_of::<UContext>() == 304 && core::mem::offset_of!(UContext, mask) == 296);
const _: () = assert!(size_of::<SigInfo>() == 128 && size_of::<Stack>() == 24);

/// Position of each register, by machine number, in `di_si_bp_bx_dx_ax_cx_sp`.
const LOW: [usize; 8] = [5, 6, 4, 3, 7, 2, 1, 0];

impl UContext {
    /// A general register, by machine number.
    pub fn gpr(&self, n: usize) -> u64 {
        if n < 8 { self.di_si_bp_bx_dx_ax_cx_sp[LOW[n]] } else { self.r8_15[n - 8] }
    }

    /// Sets a general register.
    pub fn set_gpr(&mut self, n: usize, v: u64) {
        if n < 8 {
            self.di_si_bp_bx_dx_ax_cx_sp[LOW[n]] = v;
        } else {
            self.r8_15[n - 8] = v;
        }
    }

    /// Bytes of the vector state that `fpstate` points to.
    ///
    /// # Safety
    /// `fpstate` is the kernel's, or 0.
    pub unsafe fn fpstate_bytes(&self) -> usize {
        const MAGIC: u32 = 0x4650_5853;
        if self.fpstate == 0 {
            return 0;
        }
        // SAFETY: the kernel's frame holds at least the 512 bytes of the legacy area.
        let (magic, bytes) = unsafe {
            (((self.fpstate + 464) as *const u32).read(), ((self.fpstate + 468) as *const u32).read())
        };
        if magic == MAGIC { bytes as usize } else { 512 }
    }
}

/// `rax` .. numbers used with [`UContext::gpr`].
pub mod gpr {
    #![allow(missing_docs)]
    pub const RAX: usize = 0;
    pub const RCX: usize = 1;
    pub const RDX: usize = 2;
    pub const RSP: usize = 4;
    pub const RSI: usize = 6;
    pub const RDI: usize = 7;
    pub const R11: usize = 11;
}

/// A signal frame as the kernel lays it out on the stack, without the vector state.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    /// Return address of the handler.
    pub restorer: u64,
    /// Context.
    pub uc: UContext,
    /// What happened.
    pub info: SigInfo,
}

const _: () = assert!(size_of::<Frame>() == 440);
