/* A load that faults 10 times; the handler moves the saved rip past it (3 bytes), so it never completes and never counts.
 * Once: rt_sigaction 6, mov 1, xor 1, exit 3. Round: dec, jnz around the fault; handler: add to the frame's rip
 * (load, store), ret (load), restorer 2. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=71 blocks=20 loads=20 stores=10 calls=0
    .globl _start
_start:
    mov $13, %eax
    mov $11, %edi
    lea action(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    mov $10, %ebp
    xor %ebx, %ebx
1:  mov (%rbx), %rax
    dec %ebp
    jnz 1b
    xor %edi, %edi
    mov $231, %eax
    syscall
handler:
    addq $3, 168(%rdx)          /* uc_mcontext.gregs[REG_RIP] */
    ret
restorer:
    mov $15, %eax
    syscall
    .data
action: .quad handler, 0x04000004, restorer, 0
    .section .note.GNU-stack,"",@progbits
