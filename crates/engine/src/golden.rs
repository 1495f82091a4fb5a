//! Emitted code, as text, for every kind of emission: a change of any of it must be looked at.
//!
//! Code is translated from a page at a fixed address, so that the cache lies at a fixed address too. One engine per
//! client, one after the other: they would compete for places otherwise.

use crate::access::{Access, Kind};
use crate::block::ExitKind;
use crate::boot::set_up;
use crate::client::{Client, StringCounters};
use crate::engine::Engine;
use crate::events::{Emit, Events};
use crate::modrm::{Alu, Mem, Size};
use crate::region::Regions;
use crate::state::{ThreadState, off};
use crate::superblock::{Insn, Superblock};
use crate::sys::{self, mm, nr};
use iced_x86::{Decoder, DecoderOptions, Formatter, IntelFormatter};
use std::fmt::Write;
use wire::boot::{Boot, Regs, flags};

const CODE: u64 = 0x4000_0000_0000;

/// (what, the program's bytes); each lies on a line of its own, 256 bytes apart.
const SOURCES: &[(&str, &[u8])] = &[
    ("plain, flags dead at the end: add eax, 1; jmp self", &[0x83, 0xc0, 1, 0xeb, 0xfb]),
    (
        "a side exit: cmp eax, ecx; je +2; xor edx, edx; jmp start",
        &[0x39, 0xc8, 0x74, 2, 0x31, 0xd2, 0xeb, 0xf8],
    ),
    ("a loop: dec ecx; jnz self", &[0xff, 0xc9, 0x75, 0xfc]),
    ("rip-relative: mov eax, [rip+0x40]; ret", &[0x8b, 0x05, 0x40, 0, 0, 0, 0xc3]),
    ("call +11", &[0xe8, 11, 0, 0, 0, 0xc3]),
    ("call rax", &[0xff, 0xd0, 0xc3]),
    ("call [rip+0x40]", &[0xff, 0x15, 0x40, 0, 0, 0, 0xc3]),
    ("jmp [rax+rcx*8]", &[0xff, 0x24, 0xc8]),
    ("jmp [rip+0x40], a forwarder", &[0xff, 0x25, 0x40, 0, 0, 0]),
    ("ret 8", &[0xc2, 8, 0]),
    ("syscall; ret", &[0x0f, 0x05, 0xc3]),
    ("jrcxz +1; nop; ret", &[0xe3, 1, 0x90, 0xc3]),
    ("no instruction", &[0x06]),
    ("rep movsb; ret", &[0xf3, 0xa4, 0xc3]),
    ("repe cmpsb; ret", &[0xf3, 0xa6, 0xc3]),
    (
        "reads: mov eax, [rdi]; movzx ecx, byte [rsi+rdx*2+4]; ret",
        &[0x8b, 0x07, 0x0f, 0xb6, 0x4c, 0x56, 4, 0xc3],
    ),
    (
        "a write and a read-modify-write: mov [rdi], rax; add [rdi+8], ecx; ret",
        &[0x48, 0x89, 0x07, 0x01, 0x4f, 8, 0xc3],
    ),
    ("push rbx; pop rbx; ret", &[0x53, 0x5b, 0xc3]),
    ("thread-local: mov rax, fs:[0x28]; ret", &[0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0, 0, 0, 0xc3]),
    (
        "flags live at a read: cmp eax, ecx; mov edx, [rdi]; je self; ret",
        &[0x39, 0xc8, 0x8b, 0x17, 0x74, 0xfa, 0xc3],
    ),
    ("r11 and r10 in use: mov r11, [r10]; jmp self", &[0x4d, 0x8b, 0x1a, 0xeb, 0xfb]),
    ("vpmaskmovd ymm0, ymm1, [rax]; ret", &[0xc4, 0xe2, 0x75, 0x8c, 0x00, 0xc3]),
];

/// Counts paths and string iterations, as `count` does.
struct Counts;

impl Client for Counts {
    fn block(&mut self, _: &Superblock) {}
    fn path_counter(&mut self, _: &Superblock, count: usize) -> Option<i32> {
        Some(wire::slab::COUNTERS_OFFSET as i32 + 8 * count as i32)
    }
    fn string_counters(&mut self, insn: &Insn) -> Option<StringCounters> {
        insn.ins.is_string_instruction().then_some(StringCounters {
            loads: Some(0x10_0000),
            stores: None,
            loads_each: 1,
        })
    }
    fn path_cut(&mut self, _: u64, _: &Superblock, _: usize, _: Option<usize>) {}
    fn thread_start(&mut self, _: u64, _: u32, _: bool) {}
    fn thread_end(&mut self, _: u64, _: u32) {}
    fn process_end(&mut self) {}
}

/// Emits something recognisable for every event: compares at reads, calls out at writes.
struct Everything;

impl Client for Everything {
    const EVENTS: Events =
        Events { data: true, stack: true, control: false, calls: true, syscalls: true, scratch: 2 };
    const SHARED_RETURNS: bool = true;
    fn access(&mut self, e: &mut Emit<'_>, _: &Superblock, a: &Access) {
        let [s, _, _] = e.scratch;
        e.lea(s, &a.operand);
        if a.kind == Kind::Read {
            e.keep_flags();
            e.hot.alu_load(Alu::Cmp, Size::Q, s, &Mem::gs(0x8000));
            e.restore_flags();
        } else {
            e.call_out(0x1000 + a.bytes, s);
        }
    }
    fn call(&mut self, e: &mut Emit<'_>, callee: u64) {
        let s = e.scratch[0];
        e.hot.load_address(s, callee);
        e.hot.store_gs(0x8008, s);
    }
    fn ret(&mut self, e: &mut Emit<'_>) {
        let s = e.scratch[0];
        e.hot.lea(s, &Mem::base(4, 0));
        e.hot.store_gs(0x8010, s);
    }
    fn block(&mut self, _: &Superblock) {}
    fn path_counter(&mut self, _: &Superblock, _: usize) -> Option<i32> {
        None
    }
    fn string_counters(&mut self, _: &Insn) -> Option<StringCounters> {
        None
    }
    fn path_cut(&mut self, _: u64, _: &Superblock, _: usize, _: Option<usize>) {}
    fn thread_start(&mut self, _: u64, _: u32, _: bool) {}
    fn thread_end(&mut self, _: u64, _: u32) {}
    fn process_end(&mut self) {}
}

/// Side exits that are counted when they are first taken, as `count` has them.
struct Later;

impl Client for Later {
    const SIDE_PATHS: bool = true;
    fn side_path(&mut self, _: &Superblock, count: usize) -> Option<u32> {
        Some(count as u32)
    }
    fn counter_of(&mut self, path: u32) -> i32 {
        0x10_2000 + 8 * path as i32
    }
    fn block(&mut self, _: &Superblock) {}
    fn path_counter(&mut self, _: &Superblock, count: usize) -> Option<i32> {
        Some(wire::slab::COUNTERS_OFFSET as i32 + 8 * count as i32)
    }
    fn string_counters(&mut self, _: &Insn) -> Option<StringCounters> {
        None
    }
    fn path_cut(&mut self, _: u64, _: &Superblock, _: usize, _: Option<usize>) {}
    fn thread_start(&mut self, _: u64, _: u32, _: bool) {}
    fn thread_end(&mut self, _: u64, _: u32) {}
    fn process_end(&mut self) {}
}

/// An engine for `client`, with the sources in the program's memory.
fn prepare<C: Client>(client: C, sources: &[(&str, &[u8])]) -> Engine<C> {
    let page = sys::map_anonymous(CODE, 0x4000, mm::RW, mm::MAP_FIXED_NOREPLACE).expect("a free address");
    assert_eq!(page, CODE);
    // Returns behind everything.
    // SAFETY: the pages that were just mapped.
    unsafe { core::ptr::write_bytes(CODE as *mut u8, 0xc3, 0x4000) };
    for (k, (_, bytes)) in sources.iter().enumerate() {
        let at = (CODE + 0x100 * k as u64) as *mut u8;
        // SAFETY: inside the page that was just mapped.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), at, bytes.len()) };
    }
    // SAFETY: our own page.
    unsafe { sys::call(nr::MPROTECT, [CODE, 0x4000, 5, 0, 0, 0]) };
    let mut regions = Regions::default();
    regions.read_own(&[]);
    let regs = Regs { rip: CODE, ..Regs::default() };
    let boot = Boot { regs, flags: flags::WATCH_FLAGS, ..Boot::default() };
    set_up(boot, client, regions)
}

/// Unmaps everything: the next engine is to find the same places.
fn end<C: Client>(e: Engine<C>) {
    drop(e);
    // SAFETY: mapped by `prepare`; nothing refers to it any more.
    unsafe { sys::call(nr::MUNMAP, [CODE, 0x4000, 0, 0, 0, 0]) };
}

/// Translates all sources for `client` and shows what was made.
fn show<C: Client>(client: C) -> String {
    let mut e = prepare(client, SOURCES);
    let mut out = String::new();
    for (k, (what, _)) in SOURCES.iter().enumerate() {
        let pc = CODE + 0x100 * k as u64;
        let arena = e.cache.arena_for(pc, &e.regions).expect("an arena");
        let (hot, cold) = (e.cache.arena(arena).hot, e.cache.arena(arena).cold);
        writeln!(out, "== {what}").unwrap();
        match e.translate(pc) {
            Ok(_) => {}
            Err(t) => writeln!(out, "   {t:?}").unwrap(),
        }
        let (hot_end, cold_end) = (e.cache.arena(arena).hot, e.cache.arena(arena).cold);
        list(&mut out, "hot", hot, hot_end);
        list(&mut out, "cold", cold, cold_end);
    }
    end(e);
    out
}

/// Routines that are called: the first time, and with a block that is there already.
fn show_entrances() -> String {
    let sources: &[(&str, &[u8])] = &[
        ("called before anything is there: mov eax, [rdi]; ret", &[0x8b, 0x07, 0xc3]),
        ("called, with a block: mov eax, [rdi]; ret", &[0x8b, 0x07, 0xc3]),
        ("called, with a block that lends no registers: nop; jmp to the nop", &[0x90, 0xeb, 0xfd]),
    ];
    let mut e = prepare(Everything, sources);
    let mut out = String::new();
    for (k, (what, _)) in sources.iter().enumerate() {
        writeln!(out, "== {what}").unwrap();
        let pc = CODE + 0x100 * k as u64;
        step(&mut e, &mut out, "translated", |e| {
            e.plan.called = k == 0;
            let block = e.translate(pc).expect("can be translated");
            if k != 0 {
                e.entrance_alone(pc, block);
            }
        });
    }
    end(e);
    out
}

/// Programs with a side exit that is taken: see [`show_counted`].
const TAKEN: &[(&str, &[u8])] = &[
    (
        "to a new block, flags dead there: cmp eax, ecx; je +2; xor edx, edx; jmp start; xor eax, eax; ret",
        &[0x39, 0xc8, 0x74, 4, 0x31, 0xd2, 0xeb, 0xf8, 0x31, 0xc0, 0xc3],
    ),
    (
        "to a new block, flags live there: cmp eax, ecx; je +2; xor edx, edx; jmp start; setc al; ret",
        &[0x39, 0xc8, 0x74, 4, 0x31, 0xd2, 0xeb, 0xf8, 0x0f, 0x92, 0xc0, 0xc3],
    ),
];

/// Translates what [`TAKEN`] holds, takes each side exit, takes it again after all links were cut, and shows what was
/// made at each step.
fn show_counted() -> String {
    let mut e = prepare(Later, TAKEN);
    const SLAB_BYTES: u64 = 0x20_0000;
    let slab = sys::map_anonymous(0, SLAB_BYTES, mm::RW, 0).expect("memory");
    let state = slab as *mut ThreadState;
    // SAFETY: zeroes are a valid state, and the memory is large enough for state and counters.
    let st = unsafe { &mut *state };
    st.this = state;
    let mut out = String::new();
    for (k, (what, _)) in TAKEN.iter().enumerate() {
        let pc = CODE + 0x100 * k as u64;
        writeln!(out, "== {what}").unwrap();
        step(&mut e, &mut out, "translated", |e| {
            e.translate(pc).expect("can be translated");
        });
        let mut exits = e.blocks.exits.iter();
        let id = exits.rposition(|x| x.kind == ExitKind::Counted).expect("a counted exit") as u32;
        let target = e.blocks.exits[id as usize].target;
        step(&mut e, &mut out, "taken", |e| e.take_counted(st, id));
        step(&mut e, &mut out, "its target is flushed", |e| {
            let to = e.blocks.exits[id as usize].to;
            e.unlink_incoming(to);
        });
        step(&mut e, &mut out, "taken again, to a block that is there", |e| e.take_counted(st, id));
        let disp = e.client.counter_of(e.blocks.exits[id as usize].path) as u64;
        // SAFETY: a word of the slab.
        let passages = unsafe { *((slab + disp) as *const u64) };
        writeln!(out, "{passages} passages to {target:x} so far").unwrap();
    }
    // SAFETY: mapped above; `st` is not used any more.
    unsafe { sys::call(nr::MUNMAP, [slab, SLAB_BYTES, 0, 0, 0, 0]) };
    end(e);
    out
}

/// Does something and shows the code that it made.
fn step<C: Client>(e: &mut Engine<C>, out: &mut String, what: &str, act: impl FnOnce(&mut Engine<C>)) {
    let (hot, cold) = (e.cache.arena(0).hot, e.cache.arena(0).cold);
    act(e);
    writeln!(out, "-- {what}").unwrap();
    list(out, "hot", hot, e.cache.arena(0).hot);
    list(out, "cold", cold, e.cache.arena(0).cold);
    for x in e.blocks.exits.iter().filter(|x| x.kind == ExitKind::Counted) {
        // SAFETY: the displacement of an emitted jump.
        let to = unsafe { (x.site as *const i32).read_unaligned() };
        writeln!(
            out,
            "     the jump at {:x} leads to {:x}",
            x.site - 2,
            x.site.wrapping_add_signed(4 + i64::from(to))
        )
        .unwrap();
    }
}

fn list(out: &mut String, stream: &str, from: u64, to: u64) {
    // SAFETY: just emitted.
    let code = unsafe { core::slice::from_raw_parts(from as *const u8, (to - from) as usize) };
    let mut d = Decoder::with_ip(64, code, from, DecoderOptions::NONE);
    let mut formatter = IntelFormatter::new();
    while d.can_decode() {
        let i = d.decode();
        let mut text = String::new();
        formatter.format(&i, &mut text);
        // A leaked description's address is different in every run.
        if i.code() == iced_x86::Code::Mov_r64_imm64 && (0x50..0x80).contains(&(i.immediate64() >> 40)) {
            text = text.split(',').next().unwrap_or_default().to_owned() + ",(an address of the engine)";
        }
        writeln!(out, "{stream:4} {:x} {}", i.ip(), named(&text)).unwrap();
    }
}

/// With names for the words of the thread's state, so that their places do not matter.
fn named(text: &str) -> String {
    let words = [
        ("spill_t", off::SPILL_T),
        ("spill_s", off::SPILL_S),
        ("spill_x", off::SPILL_X),
        ("exit_id", off::EXIT_ID),
        ("resume", off::RESUME),
        ("pend", off::PEND),
        ("syscall", off::SYSCALL),
        ("enter_client", off::ENTER_CLIENT),
        ("call_value", off::CALL_VALUE),
        ("call_borrowed", off::CALL_BORROWED),
        ("string_count", off::STRING_COUNT),
    ];
    let registers = (0..16u8).map(|r| (format!("borrow{r}"), off::borrow(r)));
    words.iter().map(|(n, o)| ((*n).to_owned(), *o)).chain(registers).fold(text.to_owned(), |t, (name, o)| {
        let hex = format!("{o:X}h");
        let hex = if hex.starts_with(|c: char| c.is_ascii_digit()) { hex } else { format!("0{hex}") };
        t.replace(&format!("gs:[{hex}]"), &format!("gs:[{name}]"))
    })
}

#[test]
fn emitted_code() {
    insta::assert_snapshot!("counting", show(Counts));
    insta::assert_snapshot!("every_event", show(Everything));
    insta::assert_snapshot!("counted_exits", show_counted());
    insta::assert_snapshot!("entrances", show_entrances());
}
