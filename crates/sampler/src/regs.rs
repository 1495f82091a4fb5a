//! The registers of one frame, numbered as in DWARF for x86-64.
//!
//! In the innermost frame all are known. Of an outer one only those that a callee must preserve are: rbx, rbp,
//! r12 to r15, and rsp and the pc themselves. A value that is not known is never used; [`Regs::get`] says so.

use core::arch::asm;

/// DWARF number of rbx.
pub const RBX: u8 = 3;
/// DWARF number of rbp.
pub const RBP: u8 = 6;
/// DWARF number of rsp.
pub const RSP: u8 = 7;
/// DWARF number of the return address, the pc.
pub const RA: u8 = 16;
/// What a callee preserves, in the order in which rules list them.
pub const PRESERVED: [u8; 6] = [RBX, RBP, 12, 13, 14, 15];

const ALL: u16 = u16::MAX;

/// Registers of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Regs {
    values: [u64; 16],
    known: u16,
    pc: u64,
    exact: bool,
}

impl Regs {
    /// A frame of which pc and stack pointer are known, and nothing else yet.
    pub fn new(pc: u64, sp: u64, exact: bool) -> Self {
        let mut regs = Self { values: [0; 16], known: 0, pc, exact };
        regs.set(RSP, sp);
        regs
    }

    /// The registers that a signal interrupted.
    ///
    /// # Safety
    /// `context` must be the third argument of a signal handler.
    pub unsafe fn interrupted(context: *const libc::c_void) -> Self {
        // SAFETY: by contract a `ucontext_t`; only its general registers are read.
        let g = unsafe { &(*(context as *const libc::ucontext_t)).uc_mcontext.gregs };
        Self::from_gregs(|i| g[i as usize] as u64)
    }

    /// From a source of registers in the kernel's order (`REG_R8` ...).
    pub(crate) fn from_gregs(mut read: impl FnMut(i32) -> u64) -> Self {
        let order = [
            libc::REG_RAX,
            libc::REG_RDX,
            libc::REG_RCX,
            libc::REG_RBX,
            libc::REG_RSI,
            libc::REG_RDI,
            libc::REG_RBP,
            libc::REG_RSP,
            libc::REG_R8,
            libc::REG_R9,
            libc::REG_R10,
            libc::REG_R11,
            libc::REG_R12,
            libc::REG_R13,
            libc::REG_R14,
            libc::REG_R15,
        ];
        let mut regs = Self { values: [0; 16], known: ALL, pc: read(libc::REG_RIP), exact: true };
        for (value, from) in regs.values.iter_mut().zip(order) {
            *value = read(from);
        }
        regs
    }

    /// The registers here, in the function that this is inlined into.
    #[inline(always)]
    pub fn here() -> Self {
        let (pc, sp, bp, bx, r12, r13, r14, r15): (u64, u64, u64, u64, u64, u64, u64, u64);
        // SAFETY: only reads registers.
        unsafe {
            asm!("lea {pc}, [rip]", "mov {sp}, rsp", "mov {bp}, rbp", "mov {bx}, rbx",
                pc = out(reg) pc, sp = out(reg) sp, bp = out(reg) bp, bx = out(reg) bx,
                options(nomem, nostack, preserves_flags));
            asm!("mov {a}, r12", "mov {b}, r13", "mov {c}, r14", "mov {d}, r15",
                a = out(reg) r12, b = out(reg) r13, c = out(reg) r14, d = out(reg) r15,
                options(nomem, nostack, preserves_flags));
        }
        let mut regs = Self::new(pc, sp, true);
        for (register, value) in PRESERVED.into_iter().zip([bx, bp, r12, r13, r14, r15]) {
            regs.set(register, value);
        }
        regs
    }

    /// A register by DWARF number, if its value in this frame is known.
    #[inline(always)]
    pub fn get(&self, register: u8) -> Option<u64> {
        let bit = 1u16.checked_shl(register as u32)?;
        if self.known & bit == 0 { None } else { self.values.get(register as usize).copied() }
    }

    /// Sets a register by DWARF number.
    #[inline(always)]
    pub(crate) fn set(&mut self, register: u8, value: u64) {
        if let Some(place) = self.values.get_mut(register as usize) {
            *place = value;
            self.known |= 1 << register;
        }
    }

    /// Forgets everything but what a callee preserves; the frame's caller is at `pc` with stack pointer `sp`.
    #[inline(always)]
    pub(crate) fn step_to(&mut self, pc: u64, sp: u64) {
        const KEPT: u16 = 1 << RBX | 1 << RBP | 0xf000;
        self.known &= KEPT;
        self.pc = pc;
        self.exact = false;
        self.set(RSP, sp);
    }

    /// Forgets one register.
    #[inline(always)]
    pub(crate) fn forget(&mut self, register: u8) {
        self.known &= !(1 << register);
    }

    /// Where the frame is executing, or will return to.
    #[inline(always)]
    pub fn pc(&self) -> u64 {
        self.pc
    }

    /// The stack pointer.
    #[inline(always)]
    pub fn sp(&self) -> u64 {
        self.values[RSP as usize]
    }

    /// Whether the pc is the instruction that was interrupted rather than a return address.
    #[inline(always)]
    pub fn is_exact(&self) -> bool {
        self.exact
    }

    /// The pc to look things up with: the interrupted instruction, or the call before a return address.
    #[inline(always)]
    pub fn lookup_pc(&self) -> u64 {
        if self.exact { self.pc } else { self.pc.wrapping_sub(1) }
    }
}
