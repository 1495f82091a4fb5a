/* One of each kind of memory operand:
 *   lock xadd (1,1)  xchg (1,1)  cmpxchg that fails (1,1)  cmpxchg that succeeds (1,1)  cmp [m] (1,0)  test [m] (1,0)
 *   setz [m] (0,1)  cmov from [m], condition false (1,0)  movups load (1,0)  movups store (0,1)  movntdq (0,1)
 *   prefetch, clflush, lea, long nop (0,0)  not [m] (1,1)  imul r,[m] (1,0)  fldl (1,0)  fstpl (0,1)  ldmxcsr (1,0)
 *   stmxcsr (0,1)  pushfq (0,1)  popfq (1,0)  xlat (1,0)  bt [m] (1,0)  bts [m] (1,1)
 * Loads 16, stores 12. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=32 blocks=0 loads=16 stores=12 calls=0
    .globl _start
_start:
    lea area(%rip), %rbx
    xor %eax, %eax
    lock xadd %eax, (%rbx)
    xchg %eax, (%rbx)
    mov $9, %eax
    cmpxchg %ecx, 16(%rbx)
    xor %eax, %eax
    cmpxchg %eax, 16(%rbx)
    cmpl $5, (%rbx)
    testl $5, (%rbx)
    setz 8(%rbx)
    cmovs (%rbx), %eax
    movups (%rbx), %xmm0
    movups %xmm0, 32(%rbx)
    movntdq %xmm0, 64(%rbx)
    prefetcht0 (%rbx)
    clflush (%rbx)
    lea 8(%rbx), %rcx
    notl (%rbx)
    imul (%rbx), %edx
    fldl 128(%rbx)
    fstpl 128(%rbx)
    ldmxcsr csr(%rip)
    stmxcsr 136(%rbx)
    pushfq
    popfq
    xlat
    btl $3, (%rbx)
    btsl $3, (%rbx)
    xor %edi, %edi
    mov $231, %eax
    syscall
    .data
    .balign 64
area: .fill 256
csr: .long 0x1f80
    .section .note.GNU-stack,"",@progbits
