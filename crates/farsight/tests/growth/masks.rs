//! Vector instructions that access a part of their operand: which part shows at run time. Sizes are known by construction:
//! masks and indices are made in registers, so all that a function reads is what it is about. What a function writes
//! first is not its input.

use std::fmt::Write;

use crate::profiled::Program;

/// A function's name, its body, and the cells of four bytes that are its input.
type Case = (&'static str, &'static str, u64);

const AVX2: &[Case] = &[
    ("lower_half", "vpcmpeqd xmm1, xmm1, xmm1\nvpmaskmovd ymm0, ymm1, [rdi]", 4),
    ("nothing", "vpxor xmm1, xmm1, xmm1\nvpmaskmovd ymm0, ymm1, [rdi]", 0),
    ("behind_a_write", "vpcmpeqd xmm1, xmm1, xmm1\nvpmaskmovd [rdi], ymm1, ymm0\nvmovdqu ymm0, [rdi]", 4),
    (
        "gathered",
        "vpcmpeqd ymm1, ymm1, ymm1\nmov eax, 9\nvmovd xmm2, eax\nvpgatherdd ymm0, [rdi+ymm2*8], ymm1",
        // Element 0 at index 9, the others at 0.
        2,
    ),
    (
        "gathered_half",
        "vpcmpeqd xmm1, xmm1, xmm1\nmov eax, 9\nvmovd xmm2, eax\nvpermq ymm2, ymm2, 0x4e\nvpgatherdd ymm0, [rdi+ymm2*8], ymm1",
        // The one at index 9 is masked away.
        1,
    ),
];

const AVX512: &[Case] = &[
    ("words", "mov eax, 0xf5\nkmovw k1, eax\nvmovdqu32 zmm0{k1}{z}, [rdi]", 6),
    ("none", "kxorw k1, k1, k1\nvmovdqu32 zmm0{k1}{z}, [rdi]", 0),
    ("all", "kxnorw k1, k1, k1\nvmovdqu32 zmm0{k1}{z}, [rdi]", 16),
    ("bytes", "mov eax, 0x1001\nkmovd k1, eax\nvmovdqu8 ymm0{k1}{z}, [rdi]", 2),
    // As libc compares strings: a mask with gaps, at an odd address.
    (
        "compared",
        "mov eax, 0x8000ff0f\nkmovd k2, eax\nvpxorq ymm16, ymm16, ymm16\nvpcmpb k1{k2}, ymm16, [rdi+1], 0",
        // Bytes 1 to 4, 9 to 16 and 32: cells 0 and 1, 2 to 4, and 8.
        6,
    ),
    ("few_bytes", "mov eax, 0x8101\nkmovw k1, eax\nvmovdqu8 xmm0{k1}{z}, [rdi+2]", 3),
    (
        "behind_written_bytes",
        // Bytes 2 to 5 and 33: cells 0, 1 and 8.
        "mov eax, 0x8000000f\nkmovd k1, eax\nvmovdqu8 [rdi+2]{k1}, ymm0\nvmovdqu ymm0, [rdi]\nmov eax, [rdi+32]",
        6,
    ),
    (
        "twice",
        // What was read is known, whichever way.
        "mov eax, 0x00ff00ff\nkmovd k1, eax\nvmovdqu8 ymm0{k1}{z}, [rdi]\nmov eax, [rdi+4]\nmov eax, [rdi+20]\nvmovdqu8 ymm0{k1}{z}, [rdi]",
        4,
    ),
    (
        "between_flags_and_their_use",
        // The flags and rax, which is part of the address, are the program's behind it; else it reads more.
        "mov eax, 0x11\nkmovd k1, eax\nmov eax, 4\ncmp eax, 4\nvmovdqu8 ymm0{k1}{z}, [rdi+rax*4]\nje 1f\nmov ecx, [rdi]\n1: cmp eax, 4\nje 1f\nmov ecx, [rdi+4]\n1:",
        2,
    ),
    ("wide", "mov rax, -2\nkmovq k1, rax\nvmovdqu8 zmm0{k1}{z}, [rdi+3]", 16),
    (
        "behind_a_masked_write",
        "mov eax, 3\nkmovw k1, eax\nvmovdqu32 [rdi]{k1}, zmm0\nvmovdqu32 zmm0, [rdi]",
        14,
    ),
    ("compressed", "mov eax, 0xf5\nkmovw k1, eax\nvpcompressd [rdi]{k1}, zmm0\nvmovdqu32 zmm0, [rdi]", 10),
    ("expanded", "mov eax, 0xf5\nkmovw k1, eax\nvpexpandd zmm0{k1}{z}, [rdi]", 6),
    (
        "gathered_by_mask",
        "mov eax, 3\nkmovw k1, eax\nvpxorq zmm1, zmm1, zmm1\nmov eax, 9\nvmovd xmm1, eax\nvpgatherdd zmm0{k1}, [rdi+zmm1*8]",
        2,
    ),
];

fn program(cases: &[Case]) -> String {
    let mut out = String::from(".intel_syntax noprefix\n.bss\n.balign 64\narea: .skip 8192\n.text\n");
    for (name, body, _) in cases {
        let _ = writeln!(
            out,
            ".globl {name}\n.type {name}, @function\n{name}:\n{body}\nvzeroupper\nret\n.size {name}, .-{name}"
        );
    }
    out.push_str(".globl main\n.type main, @function\nmain: sub rsp, 8\n");
    for (number, (name, ..)) in cases.iter().enumerate() {
        // Twice at the same place: all of it is new to each activation.
        let _ = writeln!(out, "lea rdi, [rip+area+{}]", 256 * number);
        let _ = writeln!(out, "call {name}\nlea rdi, [rip+area+{}]\ncall {name}", 256 * number);
    }
    out.push_str(
        "xor eax, eax\nadd rsp, 8\nret\n.size main, .-main\n.section .note.GNU-stack,\"\",@progbits\n",
    );
    out
}

fn check(cases: &[Case]) {
    assert!(cases.len() * 256 <= 8192, "the area is too small");
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("masks.s");
    std::fs::write(&source, program(cases)).unwrap();
    let program = Program::of(&[source], &["-static", "-no-pie"]);
    for metric in ["rms", "trms"] {
        let run = program.profile(&["--fold", "none", "--metric", metric], &[]);
        assert!(run.output.status.success());
        for (name, _, cells) in cases {
            assert_eq!(run.sizes(name), [(*cells, 2)], "{name} by {metric}");
        }
    }
}

#[test]
fn masked_and_gathered_elements_are_accessed_alone() {
    if !std::arch::is_x86_feature_detected!("avx2") {
        eprintln!("skipped: this processor has no AVX2");
        return;
    }
    check(AVX2);
}

#[test]
fn elements_of_mask_registers_are_accessed_alone() {
    let has =
        std::arch::is_x86_feature_detected!("avx512bw") && std::arch::is_x86_feature_detected!("avx512vl");
    if !has {
        eprintln!("skipped: this processor has no AVX-512");
        return;
    }
    check(AVX512);
}
