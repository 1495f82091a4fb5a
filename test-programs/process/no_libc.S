/* A static program without any libc: first instruction, stack layout and system calls only.
 * Answer: its argument count, checked, then one line and status 9. */
//@ flags: -nostdlib -static
//@ args: a b
//@ stdout: three arguments
//@ exit: 9
    .globl _start
_start:
    mov (%rsp), %rbx
    cmp $3, %rbx
    jne 1f
    test $15, %spl
    jnz 1f
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $16, %edx
    syscall
    mov $9, %edi
    jmp 2f
1:  mov $1, %edi
2:  mov $231, %eax
    syscall
    ud2
    .section .rodata
text: .ascii "three arguments\n"
    .section .note.GNU-stack,"",@progbits
