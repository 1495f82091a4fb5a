/* Two threads made by clone; each reports through a pipe when done, main reads both reports (blocking, so no spinning).
 * Main: pipe 4; two rounds of clone with test and jz (12), read (5, one load), dec and jnz; exit 3.
 * Thread: test and jz after clone, 2 to set up, 500 x (inc [mem], dec, jnz), write 5 (one load), exit 3.
 * The clone itself is main's instruction alone. */
//@ flags: -nostdlib -static
//@ exit: 0
//@ counts: instructions=45 blocks=4 loads=2 stores=0 calls=0
//@ counts: instructions=1512 blocks=501 loads=501 stores=500 calls=0
//@ counts: instructions=1512 blocks=501 loads=501 stores=500 calls=0
//@ repeat: 5
    .globl _start
_start:
    mov $22, %eax               /* pipe(fds) */
    lea fds(%rip), %rdi
    syscall
    mov $2, %r12d
1:  mov $56, %eax               /* clone(VM|FS|FILES|SIGHAND|THREAD|SYSVSEM, stack) */
    mov $0x50f00, %edi
    lea stacks(%rip), %rsi
    mov %r12, %rdx
    shl $14, %rdx
    add %rdx, %rsi
    xor %edx, %edx
    xor %r10d, %r10d
    xor %r8d, %r8d
    syscall
    test %eax, %eax
    jz thread
    mov fds(%rip), %edi         /* read(fds[0], byte, 1) */
    lea byte(%rip), %rsi
    mov $1, %edx
    xor %eax, %eax
    syscall
    dec %r12d
    jnz 1b
    xor %edi, %edi
    mov $60, %eax                /* exit of this thread alone: the others finish */
    syscall
thread:
    lea -8(%rsp), %rbx
    mov $500, %ecx
2:  incl (%rbx)
    dec %ecx
    jnz 2b
    mov fds+4(%rip), %edi       /* write(fds[1], byte, 1) */
    lea byte(%rip), %rsi
    mov $1, %edx
    mov $1, %eax
    syscall
    xor %edi, %edi
    mov $60, %eax
    syscall
    .data
fds: .long 0, 0
byte: .byte 0
    .bss
    .balign 16
stacks: .fill 65536
    .section .note.GNU-stack,"",@progbits
