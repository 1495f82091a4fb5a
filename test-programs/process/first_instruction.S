/* The registers at the first instruction of a static program are what the kernel sets: all zero but rsp,
 * flags 0x202 (IF), MXCSR 0x1f80, x87 control word 0x37f, direction clear.
 * Answer: the bits of what differs, none, as status 0. */
//@ flags: -nostdlib -static
//@ exit: 0
    .globl _start
_start:
    pushfq
    or %rbx, %rax
    or %rcx, %rax
    or %rdx, %rax
    or %rsi, %rax
    or %rdi, %rax
    or %rbp, %rax
    or %r8, %rax
    or %r9, %rax
    or %r10, %rax
    or %r11, %rax
    or %r12, %rax
    or %r13, %rax
    or %r14, %rax
    or %r15, %rax
    xor %edi, %edi
    test %rax, %rax
    setnz %dil
    pop %rax
    and $~0x246, %eax           /* IF, the bit that is always set, and ZF/PF that some kernels leave */
    jz 1f
    or $2, %edi
1:  pushq $0
    stmxcsr (%rsp)
    cmpl $0x1f80, (%rsp)
    je 1f
    or $4, %edi
1:  fnstcw (%rsp)
    cmpw $0x37f, (%rsp)
    je 1f
    or $8, %edi
1:  movq %xmm0, %rax
    movq %xmm15, %rcx
    or %rcx, %rax
    jz 1f
    or $16, %edi
1:  mov $231, %eax
    syscall
    ud2
    .section .note.GNU-stack,"",@progbits
