/* A six-argument system call (mmap) in a leaf with every register in use; all but rax, rcx and r11 survive, rcx is
 * the address after the call, r11 the flags. Answer: status 0; a bit for each thing that is wrong otherwise. */
//@ flags: -nostdlib -static
//@ exit: 0
    .globl _start
_start:
    mov $1000, %r15d
1:  mov $9, %eax
    xor %edi, %edi
    mov $4096, %esi
    mov $3, %edx
    mov $0x22, %r10d
    mov $-1, %r8
    xor %r9d, %r9d
    mov $0x1234, %ebx
    mov $0x2345, %ebp
    mov $0x3456, %r12d
    mov $0x4567, %r13d
    mov $0x5678, %r14d
    stc
    syscall
after:
    jnc bad1
    pushfq
    pop %rdi
    xor %r11, %rdi
    and $0x8d5, %edi
    jnz bad2
    lea after(%rip), %rdi
    cmp %rdi, %rcx
    jne bad3
    cmp $0x1234, %ebx
    jne bad4
    cmp $0x2345, %ebp
    jne bad4
    cmp $0x3456, %r12d
    jne bad4
    cmp $0x4567, %r13d
    jne bad4
    cmp $0x5678, %r14d
    jne bad4
    cmp $4096, %esi
    jne bad5
    cmp $3, %edx
    jne bad5
    cmp $0x22, %r10d
    jne bad5
    cmp $-1, %r8
    jne bad5
    test %r9, %r9
    jnz bad5
    movl $7, (%rax)
    mov %rax, %rdi
    mov $11, %eax
    syscall
    test %eax, %eax
    jnz bad6
    dec %r15d
    jnz 1b
    xor %edi, %edi
    jmp out
bad1: mov $1, %edi
    jmp out
bad2: mov $2, %edi
    jmp out
bad3: mov $3, %edi
    jmp out
bad4: mov $4, %edi
    jmp out
bad5: mov $5, %edi
    jmp out
bad6: mov $6, %edi
out: mov $231, %eax
    syscall
    .section .note.GNU-stack,"",@progbits
