//! From a module's unwind tables to the rule for one pc.
//!
//! The index (`.eh_frame_hdr`) is searched for the function, and its call frame instructions are run up to the
//! pc, by gimli with storage of a fixed size: no allocation, no panic on bad bytes. It costs about a
//! microsecond, once per pc (see `cache`). Nothing is compiled in advance: a large program has millions of
//! rows and visits a few thousand.
//!
//! DWARF expressions are evaluated symbolically over values `constant`, `reg + constant` and
//! `[reg + constant] + constant`. That covers what compilers and linkers emit: procedure linkage tables (whose
//! expression tests the pc, which is a constant here), functions that realign their stack, and hand-written
//! assembly. Anything else is `Rule::Unknown`.
//!
//! Linkers other than GNU ld describe no procedure linkage tables at all; their few instructions are
//! recognized by their bytes.

use crate::module::{Module, Tables};
use crate::regs::{PRESERVED, RA, RSP};
use crate::rule::{FrameRule, Place, Rule};
use gimli::{
    BaseAddresses, CfaRule, EhFrame, EhFrameHdr, EndianSlice, LittleEndian, Operation, Register,
    RegisterRule, UnwindContext, UnwindContextStorage, UnwindSection, UnwindTableRow,
};

type Bytes<'a> = EndianSlice<'a, LittleEndian>;

/// Storage for one evaluation, 6 KB: too large for a small signal stack, so each thread's slot has one.
pub struct Scratch(UnwindContext<usize, Fixed>);

impl core::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        f.write_str("Scratch")
    }
}

impl Scratch {
    /// Ready for use.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self(UnwindContext::new_in())
    }
}

/// Rules for at most this many registers, and this many remembered states. Compilers need seven and two.
struct Fixed;
impl UnwindContextStorage<usize> for Fixed {
    type Rules = [(Register, RegisterRule<usize>); 24];
    type Stack = [UnwindTableRow<usize, Self>; 5];
}

/// The rule for a pc of `module`. `None` while its tables may not be read.
///
/// `pc` is where to look; `exact` says that the very instruction there is being executed, so that the bytes
/// around it may be looked at.
pub fn rule_at(module: &Module, pc: u64, exact: bool, scratch: &mut Scratch) -> Option<Rule> {
    let tables = module.tables()?;
    Some(match evaluate(&tables, pc, exact, scratch) {
        Ok(rule) => rule,
        Err(gimli::Error::NoUnwindInfoForAddress) if exact => stub(pc),
        Err(_) => Rule::Unknown,
    })
}

/// Where the function that holds a pc begins, as the index has it. Signal-safe.
pub fn function_at(pc: u64) -> Option<u64> {
    crate::module::enter();
    let found = crate::module::find(pc).and_then(|module| function_in(&module.tables()?, pc).ok());
    crate::module::leave();
    found
}

fn function_in(tables: &Tables, pc: u64) -> gimli::Result<u64> {
    let bases = BaseAddresses::default().set_eh_frame_hdr(tables.index.as_ptr() as u64);
    let index = EhFrameHdr::new(tables.index, LittleEndian).parse(&bases, 8)?;
    let frames_at = index.eh_frame_ptr().direct()?;
    let len =
        (tables.segment_end as u64).checked_sub(frames_at).ok_or(gimli::Error::NoUnwindInfoForAddress)?;
    if frames_at == 0 {
        return Err(gimli::Error::NoUnwindInfoForAddress);
    }
    // SAFETY: as in `evaluate`.
    let frames = unsafe { &*core::ptr::slice_from_raw_parts(frames_at as *const u8, len as usize) };
    let frames = EhFrame::new(frames, LittleEndian);
    let bases = bases.set_eh_frame(frames_at);
    let table = index.table().ok_or(gimli::Error::NoUnwindInfoForAddress)?;
    Ok(table.fde_for_address(&frames, &bases, pc, EhFrame::cie_from_offset)?.initial_address())
}

fn evaluate(tables: &Tables, pc: u64, exact: bool, scratch: &mut Scratch) -> gimli::Result<Rule> {
    let index_at = tables.index.as_ptr() as u64;
    let bases = BaseAddresses::default().set_eh_frame_hdr(index_at);
    let index = EhFrameHdr::new(tables.index, LittleEndian).parse(&bases, 8)?;
    let frames_at = index.eh_frame_ptr().direct()?;
    let len =
        (tables.segment_end as u64).checked_sub(frames_at).ok_or(gimli::Error::NoUnwindInfoForAddress)?;
    if frames_at == 0 {
        return Err(gimli::Error::NoUnwindInfoForAddress);
    }
    // SAFETY: the linker places both sections in the same segment, whose end bounds this; `Tables` vouches for
    // the segment.
    let frames = unsafe { &*core::ptr::slice_from_raw_parts(frames_at as *const u8, len as usize) };
    let frames = EhFrame::new(frames, LittleEndian);
    let bases = bases.set_eh_frame(frames_at);
    let table = index.table().ok_or(gimli::Error::NoUnwindInfoForAddress)?;
    let fde = table.fde_for_address(&frames, &bases, pc, EhFrame::cie_from_offset)?;
    if fde.is_signal_trampoline() {
        return Ok(Rule::Signal);
    }
    let encoding = fde.cie().encoding();
    let row = fde.unwind_info_for_address(&frames, &bases, &mut scratch.0, pc)?;
    // An expression that mentions the pc means the one being executed or returned to.
    let at = if exact { pc } else { pc.wrapping_add(1) };
    let value_of = |expression: gimli::UnwindExpression<usize>| {
        let expression = expression.get(&frames).ok()?;
        symbolic(expression.operations(encoding), at)
    };
    let mut rule = translate(row, value_of).unwrap_or(Rule::Unknown);
    if let Rule::Frame(frame) = &mut rule {
        mend_realigned_epilogue(frame, pc, exact);
    }
    Ok(rule)
}

/// GCC does not say that the preserved registers are back once a function that realigned its stack has popped
/// them:
/// ```text
/// pop %rbp; lea -8(%r10), %rsp; ret       rbx, r12 ..: still [rbp + k], with the caller's rbp
/// ```
/// At the `ret` nothing of the frame is left on the stack; the `lea` is recognized by its bytes.
fn mend_realigned_epilogue(frame: &mut FrameRule, pc: u64, exact: bool) {
    const LEA: [u8; 4] = [0x49, 0x8d, 0x62, 0xf8];
    const R10: u8 = 10;
    let at_return = frame.cfa_register == RSP && frame.cfa_offset == 8;
    if frame.cfa_in_memory || !(at_return || exact && frame.cfa_register == R10 && bytes_at(pc, pc, &LEA)) {
        return;
    }
    for place in &mut frame.saved {
        if matches!(place, Place::Based(_)) {
            *place = Place::Same;
        }
    }
}

/// Whether the code at `address` has these bytes, as far as it lies in the page of `pc`.
fn bytes_at(pc: u64, address: u64, bytes: &[u8]) -> bool {
    bytes.iter().zip(address..).all(|(&byte, at)| {
        // SAFETY: callers pass a `pc` that is being executed, so its page is readable; reads stay in it.
        at & !4095 == pc & !4095 && unsafe { *(at as *const u8) } == byte
    })
}

fn translate(
    row: &UnwindTableRow<usize, Fixed>,
    value_of: impl Fn(gimli::UnwindExpression<usize>) -> Option<Value>,
) -> Option<Rule> {
    let mut rule = FrameRule::ENTRY;
    match *row.cfa() {
        CfaRule::RegisterAndOffset { register, offset } => {
            rule.cfa_register = number(register)?;
            rule.cfa_offset = i32::try_from(offset).ok()?;
        }
        CfaRule::Expression(expression) => match value_of(expression)? {
            Value { register: Some(register), offset, loaded } => {
                rule.cfa_register = register;
                rule.cfa_offset = i32::try_from(offset).ok()?;
                rule.cfa_in_memory = loaded.is_some();
                rule.cfa_addend = i8::try_from(loaded.unwrap_or(0)).ok()?;
            }
            _ => return None,
        },
    }
    for (register, how) in row.registers() {
        let words = |bytes: i64| (bytes % 8 == 0).then(|| i16::try_from(bytes / 8).ok()).flatten();
        let place = match *how {
            RegisterRule::Undefined => Place::Lost,
            RegisterRule::SameValue => Place::Same,
            RegisterRule::Offset(bytes) => Place::Framed(words(bytes)?),
            RegisterRule::Expression(expression) => match value_of(expression)? {
                Value { register: Some(base), offset, loaded: None }
                    if rule.base_register == 0 || rule.base_register == base =>
                {
                    rule.base_register = base;
                    Place::Based(words(offset)?)
                }
                _ => return None,
            },
            // The stack pointer is the frame address by definition.
            RegisterRule::ValOffset(0) if register.0 == RSP as u16 => continue,
            _ => return None,
        };
        if register.0 == RA as u16 {
            match place {
                Place::Lost => return Some(Rule::Root),
                Place::Framed(-1) => {}
                _ => return None,
            }
        } else if let Some(i) = PRESERVED.iter().position(|&p| p as u16 == register.0) {
            *rule.saved.get_mut(i)? = place;
        }
    }
    Some(Rule::Frame(rule))
}

fn number(register: Register) -> Option<u8> {
    u8::try_from(register.0).ok().filter(|&n| n < 16)
}

/// `offset`, `register + offset`, or `[register + offset] + loaded`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Value {
    register: Option<u8>,
    offset: i64,
    loaded: Option<i64>,
}

impl Value {
    fn constant(offset: i64) -> Self {
        Self { offset, ..Self::default() }
    }

    fn as_constant(self) -> Option<i64> {
        (self.register.is_none() && self.loaded.is_none()).then_some(self.offset)
    }

    fn plus(mut self, constant: i64) -> Self {
        match &mut self.loaded {
            Some(loaded) => *loaded = loaded.wrapping_add(constant),
            None => self.offset = self.offset.wrapping_add(constant),
        }
        self
    }
}

/// Runs an expression; `pc` is the value of the return address column.
fn symbolic(mut operations: gimli::OperationIter<Bytes>, pc: u64) -> Option<Value> {
    const DEPTH: usize = 8;
    let mut stack = [Value::default(); DEPTH];
    let mut depth = 0;
    macro_rules! push {
        ($value:expr) => {{
            *stack.get_mut(depth)? = $value;
            depth += 1;
        }};
    }
    macro_rules! pop {
        () => {{
            depth = depth.checked_sub(1)?;
            *stack.get(depth)?
        }};
    }
    macro_rules! binary {
        (|$a:ident, $b:ident| $result:expr) => {{
            let $b = pop!().as_constant()?;
            let $a = pop!().as_constant()?;
            push!(Value::constant($result));
        }};
    }
    while let Some(operation) = operations.next().ok()? {
        match operation {
            Operation::RegisterOffset { register, offset, .. } if register.0 == RA as u16 => {
                push!(Value::constant((pc as i64).wrapping_add(offset)));
            }
            Operation::RegisterOffset { register, offset, .. } => {
                push!(Value { register: Some(number(register)?), offset, loaded: None });
            }
            Operation::UnsignedConstant { value } => push!(Value::constant(value as i64)),
            Operation::SignedConstant { value } => push!(Value::constant(value)),
            Operation::PlusConstant { value } => {
                let top = pop!();
                push!(top.plus(value as i64));
            }
            Operation::Plus => {
                let (b, a) = (pop!(), pop!());
                push!(match (a.as_constant(), b.as_constant()) {
                    (_, Some(constant)) => a.plus(constant),
                    (Some(constant), None) => b.plus(constant),
                    _ => return None,
                });
            }
            Operation::Minus => {
                let constant = pop!().as_constant()?;
                let a = pop!();
                push!(a.plus(constant.wrapping_neg()));
            }
            Operation::Deref { size: 8, space: false, .. } => {
                let address = pop!();
                if address.register.is_none() || address.loaded.is_some() {
                    return None;
                }
                push!(Value { loaded: Some(0), ..address });
            }
            Operation::And => binary!(|a, b| a & b),
            Operation::Or => binary!(|a, b| a | b),
            Operation::Shl => binary!(|a, b| a.checked_shl(b as u32).unwrap_or(0)),
            Operation::Ge => binary!(|a, b| (a >= b) as i64),
            Operation::Gt => binary!(|a, b| (a > b) as i64),
            Operation::Le => binary!(|a, b| (a <= b) as i64),
            Operation::Lt => binary!(|a, b| (a < b) as i64),
            Operation::Eq => binary!(|a, b| (a == b) as i64),
            Operation::Ne => binary!(|a, b| (a != b) as i64),
            Operation::Nop => {}
            _ => return None,
        }
    }
    Some(pop!())
}

/// The rule for an instruction of a procedure linkage table (or of a signal trampoline) without unwind
/// information, recognized by its bytes.
fn stub(pc: u64) -> Rule {
    let at = |address: u64, bytes: &[u8]| bytes_at(pc, address, bytes);
    let popped = |words: i32| Rule::Frame(FrameRule { cfa_offset: 8 * (words + 1), ..FrameRule::ENTRY });
    let (jump, bnd_jump, push_got) = ([0xff, 0x25], [0xf2, 0xff, 0x25], [0xff, 0x35]);
    let (push, jump_near, endbr) = ([0x68], [0xe9], [0xf3, 0x0f, 0x1e, 0xfa]);
    // mov $15, %rax; syscall: the return trampoline of libcs that do not describe it.
    let sigreturn = [0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05];
    if at(pc, &sigreturn) || at(pc.wrapping_sub(7), &sigreturn) {
        Rule::Signal
    } else if (at(pc, &jump) || at(pc, &bnd_jump)) && at(pc.wrapping_sub(6), &push_got) {
        popped(2) // last instruction of the header: the index and the module are on the stack
    } else if at(pc, &push_got) || (at(pc, &jump_near) && at(pc.wrapping_sub(5), &push)) {
        popped(1) // the index is on the stack
    } else if at(pc, &jump) || at(pc, &bnd_jump) || at(pc, &push) || at(pc, &endbr) {
        popped(0)
    } else {
        Rule::Unknown
    }
}
