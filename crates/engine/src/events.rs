//! What a client is given at run time and while code is made: threads, emission sites, events.
//!
//! # Two ways to see an event
//! - **Inline.** While a superblock is translated, the engine asks the client for code at each place where an event
//!   happens ([`crate::client::Client::access`], `call`, `ret`). The client writes it through an [`Emit`], with the
//!   scratch registers that it finds there.
//! - **Clean calls.** [`Emit::call_out`] makes the code call the client's `called` with everything saved: general
//!   registers, flags, xmm0 to xmm15. (Wider vector state stays in the processor: engine and clients are compiled for
//!   SSE2.) For slow paths and for clients that need no speed.
//!
//! # Rules for emitted code
//! - It may use the scratch registers, and memory of its own; no other register, and never the program's stack.
//! - Flags: call [`Emit::keep_flags`] before the first instruction that changes them, after every
//!   [`Emit::lea`] (rax may be part of an address), and [`Emit::restore_flags`] after the last. Both emit nothing
//!   where flags are dead. rax is not a scratch register, and between the two it does not hold the program's value.
//! - Control leaves at the end of the code, by falling out.
//! - A signal may interrupt it anywhere. The program's handler then runs after it (the engine steps on to the next
//!   instruction), never in the middle of it. A fault of an instruction arrives after the instruction's events.

use crate::access::{Access, Operand};
use crate::emit::{Asm, Reg, reg};
use crate::modrm::Mem;
use crate::state::{CLIENT_AREA_OFFSET, ThreadState, off};

/// Which events a client wants. What is off costs nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Events {
    /// Accesses by operands.
    pub data: bool,
    /// Accesses by `push`, `pop`, `enter`, `leave`.
    pub stack: bool,
    /// Accesses by calls and returns to return addresses.
    pub control: bool,
    /// Calls, returns, tail jumps.
    pub calls: bool,
    /// System calls.
    pub syscalls: bool,
    /// Scratch registers at every site, at most [`SCRATCH_MAX`].
    pub scratch: usize,
}

/// Most scratch registers at a site.
pub const SCRATCH_MAX: usize = 3;

impl Events {
    /// None at all.
    pub const NONE: Events =
        Events { data: false, stack: false, control: false, calls: false, syscalls: false, scratch: 0 };

    /// Any access?
    pub const fn accesses(&self) -> bool {
        self.data || self.stack || self.control
    }

    /// All but accesses.
    pub const fn without_accesses(self) -> Events {
        Events { data: false, stack: false, control: false, ..self }
    }

    /// Anything emitted inside superblocks?
    pub const fn inline(&self) -> bool {
        self.accesses() || self.calls
    }
}

/// A place where a client emits code.
pub struct Emit<'a> {
    /// Where the straight path goes.
    pub hot: &'a mut Asm,
    /// Where what rarely happens goes. Both streams are within reach of 32-bit displacements.
    pub cold: &'a mut Asm,
    /// Registers to use freely, as many as the client asked for; their values do not survive from one site to the
    /// next.
    pub scratch: [Reg; SCRATCH_MAX],
    /// Must flags be kept? See the module's rules.
    pub flags_live: bool,
    /// Is this code made once for many places? See [`crate::client::Client::SHARED_RETURNS`].
    pub shared: bool,
    /// Registers whose program values are elsewhere while this code runs: see [`borrowed`].
    pub(crate) borrowed: u32,
    pub(crate) flags_kept: bool,
}

impl Emit<'_> {
    /// `lea r, [operand]`: the address of an access into a scratch register. Leaves flags alone.
    pub fn lea(&mut self, r: Reg, o: &Operand) {
        let disp = i32::try_from(o.disp);
        match (o.fs, o.base, o.index, disp) {
            (false, None, None, _) => self.hot.load_address(r, o.disp as u64),
            (false, base, index, Ok(disp)) => self.hot.lea(r, &Mem { gs: false, base, index, disp }),
            (true, base, index, Ok(disp)) => {
                self.hot.rdfsbase(r);
                match (base, index) {
                    (None, None) => self.hot.lea(r, &Mem::base(r, disp)),
                    (Some(b), None) if b == reg::RSP => self.hot.lea(r, &Mem::index(b, r, 0, disp)),
                    (Some(b), None) => self.hot.lea(r, &Mem::index(r, b, 0, disp)),
                    (None, Some((i, s))) => self.hot.lea(r, &Mem::index(r, i, s, disp)),
                    (Some(b), Some((i, s))) => {
                        self.hot.lea(r, &Mem::index(r, i, s, disp));
                        self.hot.lea(r, &Mem::index(b, r, 0, 0));
                    }
                }
            }
            // A displacement of more than 32 bits has no base: only `mov al, [moffs]` and its like.
            (_, _, _, Err(_)) => {
                self.hot.mov_imm64(r, o.disp as u64);
            }
        }
    }

    /// What tells clean calls at this site from those at others with the same scratch registers: code that makes one
    /// may be shared by all sites of one context.
    pub fn context(&self) -> u32 {
        self.borrowed
    }

    /// From here on flags may change. Emits nothing where nobody reads them.
    pub fn keep_flags(&mut self) {
        if self.flags_live && !self.flags_kept {
            self.hot.store_gs(off::borrow(0), reg::RAX);
            self.hot.lahf();
            self.flags_kept = true;
            self.borrowed |= 1;
        }
    }

    /// Flags become the program's again.
    pub fn restore_flags(&mut self) {
        if self.flags_kept {
            self.hot.unlahf();
            self.hot.load_gs(reg::RAX, off::borrow(0));
            self.flags_kept = false;
            self.borrowed &= !1;
        }
    }

    /// Calls the client's `called` with `token` and the value of the scratch register `value`, which is lost; all
    /// other registers survive.
    pub fn call_out(&mut self, token: u32, value: Reg) {
        call_out(self.hot, self.borrowed, token, value);
    }

    /// The same, in the cold stream.
    pub fn call_out_cold(&mut self, token: u32, value: Reg) {
        call_out(self.cold, self.borrowed, token, value);
    }
}

/// `mov gs:[value]; mov gs:[token]; lea; mov gs:[resume]; jmp client`
pub(crate) fn call_out(a: &mut Asm, borrowed: u32, token: u32, value: Reg) {
    a.store_gs(off::CALL_VALUE, value);
    a.store_gs_imm32(off::EXIT_ID, token);
    a.store_gs_imm32(off::CALL_BORROWED, borrowed);
    const REST: u64 = 7 + 9 + 8;
    let back = a.here() + REST;
    a.bytes(&[0x48 | (value >> 3) << 2, 0x8d, (value & 7) << 3 | 5]); // lea value, [back]
    a.d32(9 + 8);
    a.store_gs(off::RESUME, value);
    a.jmp_gs(off::ENTER_CLIENT);
    debug_assert_eq!(a.here(), back);
}

/// A vector access of the elements that a mask register names, one after the other in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Masked {
    /// Direction.
    pub kind: crate::access::Kind,
    /// Where the first element is.
    pub operand: Operand,
    /// The mask register.
    pub mask: u8,
    /// Bytes of an element.
    pub bytes: u64,
    /// How many elements there are with the mask's bits all set.
    pub count: u64,
}

/// A thread, in a clean call or a callback.
pub struct Thread<'a> {
    pub(crate) state: &'a mut ThreadState,
    pub(crate) borrowed: u32,
}

/// Where borrowed registers are: a bit for each in its `borrow` slot, and two for those of indirect branches.
pub(crate) mod borrowed {
    /// r11 is in `spill_t`.
    pub const R11_SPILLED: u32 = 1 << 16;
    /// rcx is in `spill_s`.
    pub const RCX_SPILLED: u32 = 1 << 17;
}

impl<'a> Thread<'a> {
    pub(crate) fn new(state: &'a mut ThreadState, borrowed: u32) -> Thread<'a> {
        Thread { state, borrowed }
    }

    /// Address of its slab; gs points there.
    pub fn slab(&self) -> u64 {
        self.state.this as u64
    }

    /// Kernel thread id.
    pub fn tid(&self) -> u32 {
        self.state.tid
    }

    /// The program's value of a general register, by machine number.
    pub fn gpr(&self, n: u8) -> u64 {
        let n = usize::from(n & 15);
        match n {
            11 if self.borrowed & borrowed::R11_SPILLED != 0 => self.state.spill_t,
            1 if self.borrowed & borrowed::RCX_SPILLED != 0 => self.state.spill_s,
            _ if self.borrowed >> n & 1 != 0 => self.state.borrow[n],
            _ => self.state.gpr[n],
        }
    }

    /// The program's stack pointer.
    pub fn sp(&self) -> u64 {
        self.gpr(reg::RSP)
    }

    /// The client's own memory for this thread: `CLIENT_AREA_BYTES` bytes, zeroed when the thread starts, reached by
    /// emitted code at `gs:[CLIENT_AREA_OFFSET + n]`. 64-byte aligned.
    pub fn area(&self) -> *mut u8 {
        (self.slab() + CLIENT_AREA_OFFSET) as *mut u8
    }
}

/// How a handler starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignalEntry {
    /// The signal.
    pub signal: u32,
    /// The handler's address.
    pub handler: u64,
    /// The program's pc that was interrupted.
    pub interrupted: u64,
    /// Stack pointer at the handler's first instruction: the frame's return address is there.
    pub sp: u64,
}

/// A memory event that was worked out at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Direction.
    pub kind: crate::access::Kind,
    /// First byte.
    pub addr: u64,
    /// Length, not 0.
    pub bytes: u64,
    /// The instruction.
    pub pc: u64,
}

/// Which of a superblock's accesses are wanted.
pub(crate) fn wanted(e: &Events, a: &Access) -> bool {
    match a.class {
        crate::access::Class::Data => e.data,
        crate::access::Class::Stack => e.stack,
        crate::access::Class::Control => e.control,
    }
}
