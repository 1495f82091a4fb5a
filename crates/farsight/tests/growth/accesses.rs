//! Random accesses against the definition: functions of assembly that read and write off a few bases in every way that
//! emitted code tells apart (sizes, alignment, displacements near and far, indices, the stack pointer as it moves, bases
//! that change, flags that live across, repeated strings in between, loops, calls). A seed always gives the same program.

use std::fmt::Write;

use crate::profiled::Program;
use crate::replay::compare;

/// Functions of a program.
const FUNCTIONS: usize = 600;
/// Instructions of a function.
const LENGTH: usize = 70;

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) % n
    }

    fn of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// An operand whose address lies inside the areas, whatever was added to its base.
fn operand(random: &mut Random) -> String {
    let disp = match random.below(8) {
        0 => random.below(16) as i64 - 8,
        1 => random.below(300) as i64 * 4 - 600,
        _ => random.below(24) as i64 * 4 - 16,
    };
    match random.below(12) {
        0 => format!("[rdi+r8*4+{disp}]"),
        1 => format!("[rip+area+{}]", 1024 + disp),
        2 | 3 => format!("[rsp+{}]", random.below(14) * 4),
        4 => format!("[rax+{disp}]"),
        5..8 => format!("[rdi+{disp}]"),
        8..10 => format!("[rsi+{disp}]"),
        _ => format!("[rdx+{disp}]"),
    }
}

/// A vector of 32 or 64 bytes, all of it or what a mask names; flags may live across. Writes stay off the stack, where
/// the return address is near.
fn wide(random: &mut Random, at: &str) -> String {
    let to = at.replace("[rsp", "[rsi");
    let mask = match random.below(4) {
        0 => random.below(u64::MAX),
        1 => random.below(u64::MAX) & random.below(u64::MAX),
        2 => u64::MAX >> random.below(64),
        _ => u64::MAX << random.below(64),
    };
    let with_mask = format!("mov r11, {mask:#x}\nkmovq k1, r11");
    match random.below(10) {
        0 => format!("vmovdqu ymm1, {at}"),
        1 => format!("vmovdqu {to}, ymm1"),
        2 => format!("vmovdqu64 zmm1, {at}"),
        3 => format!("vmovdqu64 {to}, zmm1"),
        4 => format!("{with_mask}\nvmovdqu8 ymm1{{k1}}, {at}"),
        5 => format!("{with_mask}\nvmovdqu8 {to}{{k1}}, ymm1"),
        6 => format!("{with_mask}\nvmovdqu8 xmm1{{k1}}, {at}"),
        7 => format!("{with_mask}\nvmovdqu8 {to}{{k1}}, zmm1"),
        8 => format!("{with_mask}\ncmp r9, r10\nvmovdqu8 zmm1{{k1}}, {at}\nadc r10, 0"),
        _ => format!("{with_mask}\nvmovdqu8 zmm1{{k1}}, {at}"),
    }
}

/// One to three instructions.
fn instruction(random: &mut Random, number: usize) -> String {
    let at = operand(random);
    match random.below(if has_masks() { 28 } else { 24 }) {
        0..6 => format!("mov r9, {at}"),
        6..9 => format!("mov r9d, {at}"),
        9 => format!("movzx r9d, word ptr {at}"),
        10 => format!("movzx r9d, byte ptr {at}"),
        11 => format!("movups xmm0, {at}"),
        12 => format!("mov {at}, r10"),
        13 => format!("mov {at}, r10d"),
        14 => format!("mov byte ptr {at}, 7"),
        15 => format!("movups {at}, xmm0"),
        16 => format!("add dword ptr {at}, 3"),
        17 => format!("add r9, {at}"),
        // Flags live across the access.
        18 => format!("cmp r9, r10\nmov r11, {at}\nadc r10, 0"),
        19 => {
            random.of(&["add rdi, 4", "sub rdi, 4", "add rsi, 8", "sub rsi, 8", "inc rdx", "dec rdx"]).into()
        }
        20 => "push r9\nmov r9, [rsp+8]\npop r10".into(),
        21 => "sub rsp, 16\nmov [rsp], r9\nmov r10, [rsp+24]\nadd rsp, 16".into(),
        22 => {
            let (count, copy) = (random.of(&[0, 1, 5, 33]), random.of(&["movsb", "movsd", "stosd"]));
            format!("push rdi\npush rsi\nmov ecx, {count}\nrep {copy}\npop rsi\npop rdi")
        }
        24.. => wide(random, &at),
        _ if number > 0 && random.below(3) == 0 => {
            format!("call f{}\ncall bases", number - 1 - random.below(number.min(40) as u64) as usize)
        }
        _ => "mov rax, rsi".into(),
    }
}

/// A loop that is one superblock, mostly: what is emitted there is different.
fn small_loop(random: &mut Random) -> String {
    let body: Vec<String> = (0..1 + random.below(4)).map(|_| instruction(random, 0)).collect();
    format!("mov ebp, 3\n1:\n{}\ndec ebp\njnz 1b", body.join("\n"))
}

fn has_masks() -> bool {
    std::arch::is_x86_feature_detected!("avx512bw") && std::arch::is_x86_feature_detected!("avx512vl")
}

fn program(seed: u64) -> String {
    let mut random = Random(seed);
    let mut out = String::from(
        ".intel_syntax noprefix\n.bss\n.balign 64\narea: .skip 8192\n.data\n.balign 8\n\
         where: .quad area+2048, area+4096, area+6145\n.text\n\
         bases: mov rdi, [rip+where]\nmov rsi, [rip+where+8]\nmov rdx, [rip+where+16]\n\
         mov rax, rdi\nmov r8d, 3\nret\n",
    );
    // Calls go to functions further up, at most to two of them: the tree of calls stays small.
    for number in 0..FUNCTIONS {
        let calls = number % 7 == 0;
        let _ =
            writeln!(out, ".globl f{number}\n.type f{number}, @function\nf{number}: sub rsp, 72\ncall bases");
        for _ in 0..LENGTH {
            let text = match random.below(10) {
                0 => small_loop(&mut random),
                _ => instruction(&mut random, if calls { number } else { 0 }),
            };
            let _ = writeln!(out, "{text}");
        }
        let _ = writeln!(out, "add rsp, 72\nret\n.size f{number}, .-f{number}");
    }
    out.push_str(".globl main\n.type main, @function\nmain: sub rsp, 8\n");
    for _ in 0..2 {
        (0..FUNCTIONS).for_each(|number| {
            let _ = writeln!(out, "call f{number}");
        });
    }
    out.push_str(
        "xor eax, eax\nadd rsp, 8\nret\n.size main, .-main\n.section .note.GNU-stack,\"\",@progbits\n",
    );
    out
}

#[test]
fn random_accesses_agree_with_the_definition() {
    if !has_masks() {
        eprintln!("without wide vectors: this processor has no AVX-512");
    }
    // In the third run the cache is emptied now and then: nothing that is shared may be taken for emitted. Nobody else
    // writes, so rms is trms.
    let runs = [(1, &[][..]), (2, &[]), (3, &["--cache-units", "32"]), (4, &["--metric", "rms"])];
    for (seed, flags) in runs {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("accesses.s");
        std::fs::write(&source, program(seed)).unwrap();
        let compared = compare(&Program::of(&[source], &["-static", "-no-pie"]), flags, &[]);
        let names: Vec<String> = (0..FUNCTIONS).map(|number| format!("f{number}")).collect();
        compared.agree_on(&names.iter().map(String::as_str).collect::<Vec<_>>());
    }
}
