/* Calls and stack operands. Once: mov (1), 2 instructions at the end of each round (dec, jnz), exit (3).
 * A round, 100 of them:
 *   call leaf (store), push+pop in leaf (store, load), ret (load)            4 instructions, 2 blocks, 1 call
 *   call *ptr (load, store), leaf's 3 (1 load + 1 store, ret 1 load)          4 instructions, 2 blocks, 1 call
 *   push $1 (store), call clean (store), ret 8 (load)                         3 instructions, 2 blocks, 1 call
 *   push %rbp (store), mov, leave (load)                                      3 instructions
 *   push mem (load, store), pop mem (load, store)                             2 instructions
 *   jmp *ptr2 (load)                                                          1 instruction, 1 block
 *   dec, jnz                                                                  2 instructions, 1 block
 * Sum of a round: 19 instructions, 8 blocks, 3 calls, loads 2+3+1+1+2+1 = 10, stores 2+2+2+1+2 = 9. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=1904 blocks=800 loads=1000 stores=900 calls=300
    .globl _start
_start:
    mov $100, %r12d
1:  call leaf
    call *pointer(%rip)
    push $1
    call clean
    push %rbp
    mov %rsp, %rbp
    leave
    push word(%rip)
    pop word(%rip)
    jmp *onwards(%rip)
2:  dec %r12d
    jnz 1b
    xor %edi, %edi
    mov $231, %eax
    syscall
leaf:
    push %rax
    pop %rax
    ret
clean:
    ret $8
    .data
word: .quad 0
pointer: .quad leaf
onwards: .quad 2b
    .section .note.GNU-stack,"",@progbits
