/* System calls count as one instruction each and touch no memory of their own accord: write(2) of 4 bytes, getpid 50
 * times (3 instructions and a block each), exit. */
//@ flags: -nostdlib -static
//@ stdout: one
//@ exit: 0
//@ counts: instructions=209 blocks=50 loads=0 stores=0 calls=0
    .globl _start
_start:
    mov $1, %eax
    mov $1, %edi
    lea text(%rip), %rsi
    mov $4, %edx
    syscall
    mov $50, %ebx
1:  mov $39, %eax
    syscall
    dec %ebx
    jnz 1b
    xor %edi, %edi
    mov $231, %eax
    syscall
    .section .rodata
text: .ascii "one\n"
    .section .note.GNU-stack,"",@progbits
