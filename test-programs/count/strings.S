/* String instructions: a rep one is one instruction, its accesses count by iteration.
 *   rep movsb 100 (100 loads, 100 stores), rep stosq 20 (20 stores), rep movsb with rcx = 0 (none), rep lodsb 5 (5 loads),
 *   repe cmpsb that stops at the 4th byte (8 loads), repne scasb that stops at the 3rd (3 loads),
 *   plain movsb (1, 1), plain cmpsb (2 loads), std + rep movsb 10 backward (10, 10), cld.
 * Loads 100+5+8+3+1+2+10 = 129, stores 100+20+1+10 = 131. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=35 blocks=0 loads=129 stores=131 calls=0
    .globl _start
_start:
    lea source(%rip), %rsi
    lea target(%rip), %rdi
    mov $100, %ecx
    rep movsb
    lea target(%rip), %rdi
    mov $20, %ecx
    rep stosq
    xor %ecx, %ecx
    rep movsb
    lea source(%rip), %rsi
    mov $5, %ecx
    rep lodsb
    lea abcd(%rip), %rsi
    lea abcx(%rip), %rdi
    mov $50, %ecx
    repe cmpsb
    lea abcd(%rip), %rdi
    mov $'c', %eax
    mov $50, %ecx
    repne scasb
    lea source(%rip), %rsi
    lea target(%rip), %rdi
    movsb
    cmpsb
    lea source+50(%rip), %rsi
    lea target+50(%rip), %rdi
    mov $10, %ecx
    std
    rep movsb
    cld
    nop
    nop
    xor %edi, %edi
    mov $231, %eax
    syscall
    .data
abcd: .ascii "abcdefgh"
    .fill 64
abcx: .ascii "abcxefgh"
    .fill 64
source: .fill 256, 1, 7
target: .fill 256
    .section .note.GNU-stack,"",@progbits
