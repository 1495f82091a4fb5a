/* Returns that match no call: push+ret, a return address changed on the stack, call used to read the pc,
 * a return address popped and jumped to, ret imm16. Answer: status 31, one bit for each. */
//@ flags: -nostdlib -static
//@ exit: 31
    .globl _start
_start:
    xor %ebx, %ebx
    mov $1000, %r12d
again:
    lea 1f(%rip), %rax          /* push + ret */
    push %rax
    ret
    ud2
1:  or $1, %ebx
    call change                 /* return address changed by the callee */
    jmp fail
2:  or $2, %ebx
    call 3f                     /* call $+5; pop */
3:  pop %rax
    lea 3b(%rip), %rcx
    cmp %rcx, %rax
    jne fail
    or $4, %ebx
    call popper                 /* pop; jmp */
    or $8, %ebx
    mov %rsp, %rbp
    push $1
    push $2
    call cleans                 /* callee removes its arguments */
    cmp %rsp, %rbp
    jne fail
    or $16, %ebx
    dec %r12d
    jnz again
    mov %ebx, %edi
    mov $231, %eax
    syscall
change:
    lea 2b(%rip), %rax
    mov %rax, (%rsp)
    ret
popper:
    pop %rdx
    jmp *%rdx
cleans:
    ret $16
fail:
    mov $64, %edi
    mov $231, %eax
    syscall
    .section .note.GNU-stack,"",@progbits
