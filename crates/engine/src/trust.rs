//! May instrumentation change flags before a return?
//!
//! The ABI says that flags are dead there, and relying on it saves a tenth of the time. Hand-written assembly and code
//! that gcc compiled with `-fipa-ra` (x264) do not always keep to it. So the engine relies on it until it meets the
//! first call behind which a flag is read before it is written, and then no more: everything made so far is
//! flushed *before* that call is made, hence before any return to the place behind it.
//!
//! Why that is enough: a flag that is carried over a return is read behind some call, by code that is reached from
//! there without a further return; [`reads_first`] follows all ways, direct calls included, and when it does not come to
//! an end the answer is yes. What it cannot follow is an indirect branch: a flag that is handed over a return
//! *and* then an indirect branch, before the first such call is met, is not kept.
//!
//! On the same terms flags are dead at branches through a word at a fixed place (PLT, GOT): a lazily bound one goes through
//! the dynamic linker's binder first, which keeps none.
//!
//! Where calls are events, flags are relied on to be dead at indirect calls as well (a callee that reads the flags of
//! its caller breaks every ABI). Direct callees are looked at before they are called, indirect ones when they are first
//! met: the flags of that one call are lost, and from then on nothing is relied on.

use crate::bug::Line;
use crate::client::Client;
use crate::engine::Engine;
use crate::facts::Facts;
use crate::generation::forget_returns;
use crate::liveness::{ALL, flags};
use crate::region::Regions;
use crate::state::ThreadState;
use crate::superblock::End;
use iced_x86::{Code, Decoder, DecoderOptions, FlowControl, Instruction, OpKind, Register};

/// What is relied on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Flags are dead at returns, whatever comes: for measuring only.
    Blind,
    /// Flags are dead at returns, and no call was met that speaks against it.
    Watching,
    /// Flags may be live at returns.
    Ended,
}

/// Instructions looked at behind one call.
const INSNS_MAX: usize = 200;
/// Ways not yet gone at one time.
const WAYS_MAX: usize = 24;

/// Is a flag read before it is written, on any way from `pc` on? Yes when in doubt.
pub fn reads_first(regions: &Regions, pc: u64) -> bool {
    let mut todo = [(0u64, 0u32); WAYS_MAX];
    let mut seen = [(0u64, 0u32); WAYS_MAX];
    let (mut waiting, mut known, mut left) = (1, 0, INSNS_MAX);
    todo[0] = (pc, ALL);
    while waiting > 0 {
        waiting -= 1;
        let (at, mut open) = todo[waiting];
        if seen[..known].iter().any(|s| s.0 == at && s.1 & open == open) {
            continue;
        }
        if known == WAYS_MAX {
            return true;
        }
        seen[known] = (at, open);
        known += 1;
        // SAFETY: the holder of `regions` holds the engine lock; the bytes are dropped with the decoder.
        let code = unsafe { regions.code(at, 1024) };
        // (Used where it was made: it is large, and `with_ip` would copy it.)
        let mut d = Decoder::try_with_ip(64, code, at, DecoderOptions::NONE);
        let d = d.as_mut().expect("64 bits are a mode");
        let mut ins = Instruction::default();
        // Is rcx known not to be zero? Then a repeated comparison writes flags.
        let mut counted = false;
        while d.can_decode() {
            if left == 0 {
                return true;
            }
            left -= 1;
            d.decode_out(&mut ins);
            if ins.is_invalid() {
                break;
            }
            // (A system call leaves a copy of the flags in r11, which nobody looks at.)
            let (killed, read) = flags(&ins, Facts::of(&ins));
            if read & open != 0 && ins.code() != Code::Syscall {
                return true;
            }
            open &= !killed;
            if counted && (ins.has_rep_prefix() || ins.has_repne_prefix()) {
                open = 0; // a comparison that is made at least once
            }
            if open == 0 {
                break;
            }
            counted = match ins.code() {
                Code::Mov_r32_imm32 if ins.op0_register() == Register::ECX => ins.immediate32() != 0,
                Code::Mov_r64_rm64
                | Code::Mov_rm64_r64
                | Code::Mov_r32_rm32
                | Code::Mov_rm32_r32
                | Code::Mov_r32_imm32
                | Code::Lea_r64_m => counted && ins.op0_register().full_register() != Register::RCX,
                _ => false,
            };
            let near = ins.op_count() > 0 && ins.op_kind(0) == OpKind::NearBranch64;
            let goes_on = match ins.flow_control() {
                FlowControl::Next | FlowControl::Interrupt => true,
                _ if ins.code() == Code::Syscall => true,
                flow if near => {
                    if waiting == WAYS_MAX {
                        return true;
                    }
                    todo[waiting] = (ins.near_branch_target(), open);
                    waiting += 1;
                    flow == FlowControl::ConditionalBranch
                }
                _ => false,
            };
            if !goes_on {
                break;
            }
        }
    }
    false
}

impl<C: Client> Engine<C> {
    /// Are flags dead at returns?
    pub(crate) fn returns_kill_flags(&self) -> bool {
        self.trust != Trust::Ended
    }

    /// Are flags dead at indirect calls? Only where callees are looked at when they are first met.
    pub(crate) fn calls_kill_flags(&self) -> bool {
        self.returns_kill_flags() && self.events().calls
    }

    /// An indirect call has the callee `pc`, which is new: does it read flags?
    pub(crate) fn watch_callee(&mut self, pc: u64) {
        if self.trust == Trust::Watching && self.events().calls && reads_first(&self.regions, pc) {
            self.end_trust();
        }
    }

    /// Does the superblock that is about to be made end with a call behind which flags are live?
    pub(crate) fn trust_is_betrayed(&self) -> bool {
        let next = match self.sb.end {
            End::Call { next, .. } | End::CallIndirect { next } if self.trust == Trust::Watching => next,
            _ => return false,
        };
        reads_first(&self.regions, next)
    }

    /// From now on flags count as live at returns; what was made before is flushed.
    pub(crate) fn end_trust(&mut self) {
        if self.boot.flags & wire::boot::flags::VERBOSE != 0 {
            Line::new()
                .text(b"farsight: flags live behind the call in the block at ")
                .hex(self.sb.pc)
                .print();
        }
        self.trust = Trust::Ended;
        self.memo.forget();
        self.flush_all();
        // What returns find now are landings that may change flags: have them ask again. (A thread that is about to fill a
        // slot may still do so; every call made from now on stores its own landing there first.)
        self.owners.forget();
        self.return_fill = self.return_miss;
        for slab in 0..self.slabs.taken as u32 {
            let slab = self.slabs.address(slab);
            // SAFETY: a thread's state, or one that a thread has left; generations change under the engine lock.
            unsafe {
                let st = slab as *mut ThreadState;
                (&raw mut (*st).return_fill).write_volatile((*st).return_miss);
            }
            forget_returns(slab);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::region::Region;

    /// Does this code read a flag first?
    fn check(code: &[u8]) -> bool {
        let mut page = vec![0x90u8; 0x4000];
        let start = page.as_ptr() as u64;
        page[0x1000..0x1000 + code.len()].copy_from_slice(code);
        let mut regions = Regions::default();
        regions.insert(Region { start, end: start + 0x4000, prot: 5, backing: None });
        reads_first(&regions, start + 0x1000)
    }

    #[test]
    fn a_read_is_found_on_any_way() {
        assert!(check(&[0x0f, 0x92, 0xc0, 0xc3])); // setc al
        assert!(check(&[0x75, 0x02, 0xc3])); // jne
        assert!(!check(&[0x85, 0xc0, 0x75, 0x02, 0xc3])); // test eax, eax; jne
        assert!(check(&[0xff, 0xc0, 0x72, 0x01, 0xc3])); // inc leaves CF alone; jc
        assert!(check(&[0xeb, 0x03, 0xc3, 0xc3, 0xc3, 0x0f, 0x92, 0xc0])); // behind a jump
        assert!(check(&[0xe8, 0x01, 0, 0, 0, 0xc3, 0x0f, 0x92, 0xc0])); // in a callee
        assert!(check(&[0xe3, 0x02, 0x31, 0xc0, 0x0f, 0x92, 0xc0])); // on the taken side alone
        assert!(!check(&[0x58, 0x5b, 0xc3, 0x0f, 0x92, 0xc0])); // pop; pop; ret
        assert!(!check(&[0xff, 0xd0, 0x0f, 0x92, 0xc0])); // behind another call: its own matter
    }

    #[test]
    fn a_repeated_comparison_writes_flags_if_its_count_is_known() {
        const COMPARE: [u8; 5] = [0xf3, 0xa6, 0x0f, 0x97, 0xc0]; // repz cmpsb; seta al
        assert!(check(&COMPARE));
        let counted = [&[0xb9, 12, 0, 0, 0, 0x48, 0x89, 0xc6][..], &COMPARE].concat(); // mov ecx, 12; mov rsi, rax
        assert!(!check(&counted));
        let zero = [&[0xb9, 0, 0, 0, 0][..], &COMPARE].concat();
        assert!(check(&zero));
    }

    #[test]
    fn wide_shifts_by_32_write_flags() {
        assert!(!check(&[0x48, 0xc1, 0xe9, 0x20, 0x75, 0x01, 0xc3])); // shr rcx, 32; jne
        assert!(check(&[0xc1, 0xe9, 0x20, 0x75, 0x01, 0xc3])); // shr ecx, 32 does nothing; jne
    }

    #[test]
    fn no_end_means_yes() {
        assert!(check(&[])); // nops, and then the end of what is looked at
        assert!(!check(&[0xeb, 0xfe])); // a loop of its own
    }
}
