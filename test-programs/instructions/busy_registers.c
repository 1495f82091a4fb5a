/* A loop that uses all fifteen general registers, flags and the red zone at once, with loads, stores and branches:
 * whoever needs a scratch register has none to take. Answer: a checksum. */
//@ stdout: checksum 4104860eadaea907
#include "micro.h"
unsigned long busy(unsigned long seed, unsigned long laps, unsigned long *mem);
__asm__(".globl busy\nbusy:\n push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        " mov %rsi, %rcx\n mov %rdx, %r15\n mov %rdi, %rax\n mov $3, %ebx; mov $5, %edx; mov $7, %esi; mov $11, %edi; mov $13, %ebp\n"
        " mov $17, %r8d; mov $19, %r9d; mov $23, %r10d; mov $29, %r11d; mov $31, %r12d; mov $37, %r13d; mov $41, %r14d\n"
        "1: add %rbx, %rax; adc %rdx, %rbx; sbb %rsi, %rdx; rol $7, %rsi; xor %rdi, %rsi; imul %rbp, %rdi; lea 1(%rbp,%r8,2), %rbp\n"
        " mov %r9, -8(%rsp); add %rax, -8(%rsp); mov -8(%rsp), %r9; xor %r10, %r8; add %r11, %r10; mov %r12, (%r15)\n"
        " xor (%r15), %r11; lea (%r12,%r13), %r12; bswap %r13; xor %r14, %r13; add %rax, %r14; js 2f; xor %r9, %r14\n"
        "2: mov %r14, -128(%rsp); xor -128(%rsp), %r10; cmp %rbx, %rdx; ja 3f; not %rbx\n"
        "3: dec %rcx; jnz 1b\n"
        " xor %rbx, %rax; xor %rdx, %rax; xor %rsi, %rax; xor %rdi, %rax; xor %rbp, %rax; xor %r8, %rax; xor %r9, %rax\n"
        " xor %r10, %rax; xor %r11, %rax; xor %r12, %rax; xor %r13, %rax; xor %r14, %rax\n"
        " pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");
int main(void) {
    unsigned long m = 0;
    SHOW("checksum %lx", busy(0x1234, 200000, &m));
    return 0;
}
