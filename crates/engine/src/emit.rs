//! A small assembler: exactly the instructions that the engine adds, written as bytes.
//!
//! The program's own instructions are copied, not re-encoded; iced's encoder is used only where an operand has
//! to change. An [`Asm`] writes into one stream of a code cache and never past its end; positions are cache
//! addresses.

/// Machine number of a general register.
pub type Reg = u8;
/// Registers by name.
pub mod reg {
    #![allow(missing_docs)]
    pub const RAX: u8 = 0;
    pub const RCX: u8 = 1;
    pub const RSP: u8 = 4;
    pub const R11: u8 = 11;
}

/// Condition codes as encoded in `jcc`.
pub mod cc {
    #![allow(missing_docs)]
    pub const NE: u8 = 5;
}

/// Longest code that [`Asm::copy`] copies.
pub const PATTERN_BYTES: usize = 128;
/// Such code.
pub type Pattern = [u8; PATTERN_BYTES];

/// A stream of machine code.
pub struct Asm {
    cur: *mut u8,
    end: *mut u8,
}

impl Asm {
    /// Writes at `at`, up to `end`.
    ///
    /// # Safety
    /// The range is writable memory that nothing else writes while this exists.
    pub unsafe fn new(at: u64, end: u64) -> Asm {
        Asm { cur: at as *mut u8, end: end as *mut u8 }
    }

    /// The address of the next byte.
    pub fn here(&self) -> u64 {
        self.cur as u64
    }

    /// Bytes left.
    pub fn room(&self) -> usize {
        self.end as usize - self.cur as usize
    }

    /// Appends bytes.
    #[inline]
    pub fn bytes(&mut self, b: &[u8]) {
        assert!(b.len() <= self.room(), "code cache stream overrun");
        // SAFETY: the room was checked, and `new` promised the memory.
        unsafe {
            core::ptr::copy_nonoverlapping(b.as_ptr(), self.cur, b.len());
            self.cur = self.cur.add(b.len());
        }
    }

    /// Appends the low `n` (at most 8) bytes of `first` and the low `m` (at most 4) of `second`.
    #[inline]
    pub fn two_words(&mut self, first: u64, n: usize, second: u32, m: usize) {
        debug_assert!(n <= 8 && m <= 4);
        if self.room() < 16 {
            return self.two_words_at_end(first, n, second, m);
        }
        // SAFETY: at most twelve bytes, into a stream with room for them.
        unsafe {
            self.cur.cast::<u64>().write_unaligned(first);
            self.cur.add(n).cast::<u32>().write_unaligned(second);
            self.cur = self.cur.add(n + m);
        }
    }

    #[cold]
    #[inline(never)]
    fn two_words_at_end(&mut self, first: u64, n: usize, second: u32, m: usize) {
        self.bytes(&first.to_le_bytes()[..n]);
        self.bytes(&second.to_le_bytes()[..m]);
    }

    /// Appends the `len` (at most 16) bytes of an instruction of the program at `pc`.
    ///
    /// # Safety
    /// The instruction is readable. (Its page is, then, and bytes behind it in the same page are read and ignored.)
    #[inline]
    pub unsafe fn instruction(&mut self, pc: u64, len: usize) {
        debug_assert!(len <= 16);
        if pc & 0xfff > 0xff0 || self.room() < 16 {
            // SAFETY: as the caller promises.
            self.bytes(unsafe { core::slice::from_raw_parts(pc as *const u8, len) });
            return;
        }
        // SAFETY: sixteen bytes of one readable page, into a stream with room for them.
        unsafe {
            let word = (pc as *const [u64; 2]).read_unaligned();
            (self.cur as *mut [u64; 2]).write_unaligned(word);
            self.cur = self.cur.add(len);
        }
    }

    /// Appends the first `len` bytes of `code`, with 32-bit numbers of its own at some of its places.
    #[inline]
    pub fn copy(&mut self, code: &Pattern, len: usize, numbers: impl Iterator<Item = (usize, i32)>) {
        let start = self.cur;
        if len <= PATTERN_BYTES && PATTERN_BYTES <= self.room() {
            // (All of it, without a loop: a loop would become a call of memcpy, which takes longer than all the rest.)
            let part = |k: usize| {
                // SAFETY: one of the eight parts of the pattern, into a stream with room for all of them.
                unsafe {
                    let word = code.as_ptr().add(k * 16).cast::<[u64; 2]>().read_unaligned();
                    start.add(k * 16).cast::<[u64; 2]>().write_unaligned(word);
                }
            };
            part(0);
            part(1);
            part(2);
            part(3);
            part(4);
            part(5);
            part(6);
            part(7);
            // SAFETY: inside of what was written.
            self.cur = unsafe { start.add(len) };
        } else {
            self.bytes(&code[..len]);
        }
        for (at, number) in numbers {
            assert!(at + 4 <= len, "outside of the code");
            // SAFETY: four of the bytes that were just written.
            unsafe { start.add(at).cast::<i32>().write_unaligned(number) };
        }
    }

    /// Writes a 32-bit number over the last bytes, at `at`.
    #[inline]
    pub fn overwrite(&mut self, at: u64, v: i32) {
        let back = self.here().wrapping_sub(at);
        assert!((4..=16).contains(&back), "not of the last instruction");
        // SAFETY: four bytes that were just written.
        unsafe { (at as *mut i32).write_unaligned(v) };
    }

    /// Appends a 32-bit number.
    pub fn d32(&mut self, v: i32) {
        self.bytes(&v.to_le_bytes());
    }

    /// Appends a 64-bit number.
    pub fn q64(&mut self, v: u64) {
        self.bytes(&v.to_le_bytes());
    }

    /// Pads to a multiple of `n`.
    pub fn align(&mut self, n: u64) {
        let pad = (n - self.here() % n) % n;
        self.nops(pad as usize);
    }

    /// Appends `n` bytes of no operation.
    pub fn nops(&mut self, mut n: usize) {
        // (The bytes that are missing are zeros.)
        const NOPS: [[u8; 8]; 9] = [
            [0x90, 0, 0, 0, 0, 0, 0, 0],
            [0x66, 0x90, 0, 0, 0, 0, 0, 0],
            [0x0f, 0x1f, 0x00, 0, 0, 0, 0, 0],
            [0x0f, 0x1f, 0x40, 0, 0, 0, 0, 0],
            [0x0f, 0x1f, 0x44, 0, 0, 0, 0, 0],
            [0x66, 0x0f, 0x1f, 0x44, 0, 0, 0, 0],
            [0x0f, 0x1f, 0x80, 0, 0, 0, 0, 0],
            [0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0],
            [0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0],
        ];
        while n > 0 {
            let k = n.min(9);
            self.two_words(u64::from_le_bytes(NOPS[k - 1]), k.min(8), 0, k - k.min(8));
            n -= k;
        }
    }

    /// `op r64, gs:[disp]` and the like: one opcode byte with an absolute gs operand.
    fn gs_op(&mut self, opcode: u8, r: Reg, disp: i32) {
        let head = [0x65, 0x48 | (r >> 3) << 2, opcode, (r & 7) << 3 | 4, 0x25, 0, 0, 0];
        self.two_words(u64::from_le_bytes(head), 5, disp as u32, 4);
    }

    /// `mov gs:[disp], r`
    pub fn store_gs(&mut self, disp: i32, r: Reg) {
        self.gs_op(0x89, r, disp);
    }

    /// `mov r, gs:[disp]`
    pub fn load_gs(&mut self, r: Reg, disp: i32) {
        self.gs_op(0x8b, r, disp);
    }

    /// `inc qword gs:[disp]`; changes flags.
    pub fn inc_gs(&mut self, disp: i32) {
        self.gs_op(0xff, 0, disp);
    }

    /// `mov dword gs:[disp], imm`
    pub fn store_gs_imm32(&mut self, disp: i32, imm: u32) {
        let head = u32::from_le_bytes([0x65, 0xc7, 0x04, 0x25]);
        self.two_words(u64::from(disp as u32) << 32 | u64::from(head), 8, imm, 4);
    }

    /// `mov qword gs:[disp], imm`, sign-extended
    pub fn store_gs_imm64(&mut self, disp: i32, imm: i32) {
        self.bytes(&[0x65, 0x48, 0xc7, 0x04, 0x25]);
        self.d32(disp);
        self.d32(imm);
    }

    /// `jmp gs:[disp]`
    pub fn jmp_gs(&mut self, disp: i32) {
        self.bytes(&[0x65, 0xff, 0x24, 0x25]);
        self.d32(disp);
    }

    /// `pop gs:[disp]`
    pub fn pop_gs(&mut self, disp: i32) {
        self.bytes(&[0x65, 0x8f, 0x04, 0x25]);
        self.d32(disp);
    }

    /// `push qword gs:[disp]`
    pub fn push_gs(&mut self, disp: i32) {
        self.bytes(&[0x65, 0xff, 0x34, 0x25]);
        self.d32(disp);
    }

    /// `mov dst, src`
    pub fn mov(&mut self, dst: Reg, src: Reg) {
        self.bytes(&[0x48 | (src >> 3) << 2 | dst >> 3, 0x89, 0xc0 | (src & 7) << 3 | (dst & 7)]);
    }

    /// `mov r, imm64`
    pub fn mov_imm64(&mut self, r: Reg, v: u64) {
        self.bytes(&[0x48 | r >> 3, 0xb8 | (r & 7)]);
        self.q64(v);
    }

    /// The program address `v` into `r` without touching flags, in the shortest form that reaches.
    pub fn load_address(&mut self, r: Reg, v: u64) {
        if let Ok(imm) = u32::try_from(v) {
            if r >= 8 {
                self.bytes(&[0x41]);
            }
            self.bytes(&[0xb8 | (r & 7)]);
            self.d32(imm as i32);
        } else if let Ok(d) = i32::try_from(v.wrapping_sub(self.here() + 7) as i64) {
            self.bytes(&[0x48 | (r >> 3) << 2, 0x8d, (r & 7) << 3 | 5]);
            self.d32(d);
        } else {
            self.mov_imm64(r, v);
        }
    }

    /// Length of [`Asm::load_address`] of `v` into `r` near the address `at`.
    pub fn load_address_len(at: u64, r: Reg, v: u64) -> u64 {
        if u32::try_from(v).is_ok() {
            5 + u64::from(r >= 8)
        } else if i32::try_from(v.wrapping_sub(at + 7) as i64).is_ok() {
            7
        } else {
            10
        }
    }

    /// `jmp [at]`, RIP-relative.
    pub fn jmp_mem(&mut self, at: u64) {
        self.bytes(&[0xff, 0x25]);
        let d = at.wrapping_sub(self.here() + 4);
        self.d32(d as i32);
    }

    /// `lea r, [r + disp]`
    pub fn add_lea(&mut self, r: Reg, disp: i32) {
        self.bytes(&[0x48 | (r >> 3) << 2 | r >> 3, 0x8d, 0x80 | (r & 7) << 3 | (r & 7)]);
        if r & 7 == 4 {
            self.bytes(&[0x24]);
        }
        self.d32(disp);
    }

    /// `lea a, [a + b]`
    pub fn add_lea_reg(&mut self, a: Reg, b: Reg) {
        // b is never rsp: an index cannot be.
        self.bytes(&[0x48 | (a >> 3) << 2 | (b >> 3) << 1 | a >> 3, 0x8d, 0x44 | (a & 7) << 3]);
        self.bytes(&[(b & 7) << 3 | (a & 7), 0]);
    }

    /// `lea rsp, [rsp + n]`
    pub fn drop_stack(&mut self, n: i32) {
        if let Ok(n) = i8::try_from(n) {
            self.bytes(&[0x48, 0x8d, 0x64, 0x24, n as u8]);
        } else {
            self.bytes(&[0x48, 0x8d, 0xa4, 0x24]);
            self.d32(n);
        }
    }

    /// Pushes the program address `v`, from the constant at `pool` if it does not fit an immediate.
    pub fn push_address(&mut self, v: u64, pool: u64) {
        if i32::try_from(v as i64).is_ok() {
            self.bytes(&[0x68]);
            self.d32(v as i32);
        } else {
            self.bytes(&[0xff, 0x35]);
            let d = pool.wrapping_sub(self.here() + 4);
            self.d32(d as i32);
        }
    }

    /// `jmp rel32`; returns the address of the displacement.
    #[inline]
    pub fn jmp(&mut self, target: u64) -> u64 {
        self.rel32(0xe9, 1, target)
    }

    /// A jump to `target`, however far it is.
    pub fn jmp_anywhere(&mut self, target: u64) {
        if i32::try_from(target.wrapping_sub(self.here() + 5) as i64).is_ok() {
            self.jmp(target);
        } else {
            self.bytes(&[0xff, 0x25, 0, 0, 0, 0]); // jmp [the next word]
            self.q64(target);
        }
    }

    /// `jcc rel32`; returns the address of the displacement.
    #[inline]
    pub fn jcc(&mut self, cond: u8, target: u64) -> u64 {
        self.rel32(u64::from(cond) << 8 | 0x800f, 2, target)
    }

    /// `call rel32`; returns the address of the displacement.
    pub fn call(&mut self, target: u64) -> u64 {
        self.rel32(0xe8, 1, target)
    }

    /// An opcode of `n` bytes and the way to `target`; returns the address of the displacement.
    #[inline]
    fn rel32(&mut self, opcode: u64, n: usize, target: u64) -> u64 {
        let site = self.here() + n as u64;
        self.two_words(opcode, n, target.wrapping_sub(site + 4) as u32, 4);
        site
    }

    /// Pads so that four bytes at `lead` bytes from here do not cross an 8-byte boundary: a patch of them is
    /// then one atomic store.
    pub fn align_patch(&mut self, lead: u64) {
        let at = (self.here() + lead) % 8;
        if at > 4 {
            self.nops(8 - at as usize);
        }
    }

    /// The same before a jump whose displacement starts at its byte `lead`. What pads is part of the jump: prefixes that
    /// mean nothing in 64-bit code, where a nop would be one more instruction, and keep a comparison and its jump from
    /// being fused.
    pub fn prefix_patch(&mut self, lead: u64) {
        let at = (self.here() + lead) % 8;
        if at > 4 {
            self.prefixes(8 - at);
        }
    }

    fn prefixes(&mut self, n: u64) {
        const ES: u64 = 0x2626_2626_2626_2626;
        self.two_words(ES, n as usize, 0, 0);
    }

    /// Pads so that five bytes lie in one 8-byte word, and puts a nop there that can later become a jump; returns the
    /// address of its future displacement. The padding belongs to the nop, and to the jump.
    pub fn junction(&mut self) -> u64 {
        let at = self.here() % 8;
        if at > 3 {
            self.prefixes(8 - at);
        }
        self.bytes(&[0x0f, 0x1f, 0x44, 0x00, 0x00]);
        self.here() - 4
    }

    /// Looks the target in r11 up and jumps: `mov ecx,0; crc32 rcx,r11; movzx ecx,cx; jmp [rcx*8+table]`.
    /// Leaves flags alone; the program's rcx is spilled. The destination compares r11 with its own address (see
    /// `lookup.rs`).
    pub fn table_jump(&mut self, table: u32) {
        self.bytes(&[0xb9, 0, 0, 0, 0]);
        self.bytes(&[0xf2, 0x49, 0x0f, 0x38, 0xf1, 0xcb]);
        self.bytes(&[0x0f, 0xb7, 0xc9]);
        self.bytes(&[0xff, 0x24, 0xcd]);
        self.d32(table as i32);
    }

    /// The same through r9, which is changed instead of rcx.
    pub fn table_jump_r9(&mut self, table: u32) {
        self.bytes(&[0x41, 0xb9, 0, 0, 0, 0]);
        self.bytes(&[0xf2, 0x4d, 0x0f, 0x38, 0xf1, 0xcb]);
        self.bytes(&[0x45, 0x0f, 0xb7, 0xc9]);
        self.bytes(&[0x42, 0xff, 0x24, 0xcd]);
        self.d32(table as i32);
    }
}

/// Points the 32-bit displacement at `site` to `target`.
///
/// # Safety
/// `site` is the displacement of a jump in the cache that does not cross an 8-byte boundary, written under the
/// engine lock; the target is in reach.
pub unsafe fn patch_rel32(site: u64, target: u64) {
    let d = i32::try_from(target.wrapping_sub(site + 4) as i64).expect("patch in reach");
    // SAFETY: as promised by the caller.
    unsafe { patch_imm32(site, d as u32) };
}

/// Makes the 32-bit constant at `site` `value`.
///
/// # Safety
/// `site` is a constant or displacement in the cache that does not cross an 8-byte boundary, written under the engine
/// lock.
pub unsafe fn patch_imm32(site: u64, value: u32) {
    // SAFETY: as promised by the caller. In assembly, because it must be one store and need not be aligned.
    unsafe { core::arch::asm!("mov dword ptr [{}], {:e}", in(reg) site, in(reg) value, options(nostack)) };
}
