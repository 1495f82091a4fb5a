/* Seven instructions in a row, one load, one store, no branch.
 * lea, store, load, add, mov, nop (its operand is no access), syscall. */
//@ flags: -nostdlib -static
//@ exit: 12
//@ counts: instructions=7 blocks=0 loads=1 stores=1 calls=0
    .globl _start
_start:
    lea word(%rip), %rbx
    movl $5, (%rbx)
    mov (%rbx), %edi
    add $7, %edi
    mov $231, %eax
    nopw 0(%rax,%rax)
    syscall
    .data
word: .long 0
    .section .note.GNU-stack,"",@progbits
