/* A handler run 10 times by kill(self): its instructions and its sigreturn count, the kernel's frame does not.
 * Once: rt_sigaction 6, getpid 3, mov 1, exit 3. Round: 4 (kill) + handler 1 inc [mem] + ret to the restorer (load) + restorer
 * 2 + dec, jnz. */
//@ flags: -nostdlib -static
//@ exit: 10
//@ counts: instructions=113 blocks=20 loads=21 stores=10 calls=0
    .globl _start
_start:
    mov $13, %eax
    mov $10, %edi
    lea action(%rip), %rsi
    xor %edx, %edx
    mov $8, %r10d
    syscall
    mov $39, %eax
    syscall
    mov %eax, %ebx
    mov $10, %ebp
1:  mov %ebx, %edi
    mov $10, %esi
    mov $62, %eax
    syscall
    dec %ebp
    jnz 1b
    mov hits(%rip), %edi
    mov $231, %eax
    syscall
handler:
    incl hits(%rip)
    ret
restorer:
    mov $15, %eax
    syscall
    .data
hits: .long 0
action: .quad handler, 0x04000000, restorer, 0
    .section .note.GNU-stack,"",@progbits
