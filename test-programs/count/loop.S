/* A loop of 1000 rounds of (add [mem], dec, jnz), one load and one store each; then a loop by `loop` of 10.
 * 2 + 1000*3 + 1 + 10*2 + 3 = 3026 instructions; blocks 1000 + 10; loads and stores 1000. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=3026 blocks=1010 loads=1000 stores=1000 calls=0
    .globl _start
_start:
    lea word(%rip), %rbx
    mov $1000, %esi
1:  addl $3, (%rbx)
    dec %esi
    jnz 1b
    mov $10, %ecx
2:  inc %edx
    loop 2b
    xor %edi, %edi
    mov $231, %eax
    syscall
    .data
word: .long 0
    .section .note.GNU-stack,"",@progbits
