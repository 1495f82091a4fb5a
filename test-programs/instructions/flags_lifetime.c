/* Flags that live longer than usual: across instructions that keep some of them (inc, dec, lea, not, mov, rotates),
 * across long stretches, jumps in chains, both sides of a branch, unordered comparisons, loops with carry.
 * Whoever needs flags for itself must give them back at each of these. Answer: every one right. */
//@ stdout: inc keeps CF 1, dec loop with adc 1, far 1, chain 1, both sides 1, unordered 1, sbb mask 1, bt cmov 1
//@ stdout: rotate keeps ZF 1, not keeps all 1, after a store 1, three way 1, x87 1, setcc pair 1, jump table 1
#include "micro.h"
#define N 16
int main(void) {
    int ok[15];
    for (int i = 0; i < 15; i++) ok[i] = 1;
    static volatile long memory[4];
    for (int lap = 0; lap < LAPS; lap++) {
        unsigned char a, b, c;
        long x = lap & 1, y = 0, z = 0;
        /* CF from the compare lives through inc and dec, which write the other flags */
        __asm__ volatile("cmp $1, %1; inc %2; dec %2; mov %2, %3; setc %0" : "=q"(a), "+r"(x), "+r"(y), "+m"(memory[0])::"cc");
        ok[0] &= a == (x < 1);
        /* multi-word addition: CF carried around a dec/jnz loop */
        unsigned long p[N], q[N], r[N], carry = 0;
        for (int i = 0; i < N; i++) p[i] = ~0ul - (i % 3), q[i] = (unsigned long)lap + i;
        unsigned long n = N, i0 = 0;
        __asm__ volatile("clc; 1: mov (%2,%1,8), %%rax; adc (%3,%1,8), %%rax; mov %%rax, (%4,%1,8); lea 1(%1), %1; dec %0; jnz 1b; setc %%al; movzbl %%al, %%eax; mov %%rax, %5"
                         : "+r"(n), "+r"(i0) : "r"(p), "r"(q), "r"(r), "m"(carry) : "rax", "cc", "memory");
        unsigned long cc = 0;
        for (int i = 0; i < N; i++) {
            unsigned __int128 s = (unsigned __int128)p[i] + q[i] + cc;
            ok[1] &= r[i] == (unsigned long)s;
            cc = (unsigned long)(s >> 64);
        }
        ok[1] &= carry == cc;
        /* set far before they are used, with stores, loads and address arithmetic between */
        __asm__ volatile("cmp $1, %1; .rept 30; mov %2, %3; lea 1(%2), %2; mov %3, %4; .endr; setc %0"
                         : "=q"(a), "+r"(x), "+r"(y), "+m"(memory[1]), "=r"(z)::"cc");
        ok[2] &= a == (x < 1);
        /* through a chain of jumps */
        __asm__ volatile("cmp $1, %1; jmp 1f; 5: setc %0; jmp 9f; 1: jmp 2f; 4: jmp 5b; 2: jmp 3f; 3: mov %2, %3; jmp 4b; 9:"
                         : "=q"(a), "+r"(x), "+r"(y), "+m"(memory[1])::"cc");
        ok[3] &= a == (x < 1);
        /* used by the branch and again on both of its sides */
        __asm__ volatile("cmp $1, %2; je 1f; mov %3, %4; setc %0; setz %1; jmp 2f; 1: mov %3, %4; setc %0; setz %1; 2:"
                         : "=q"(a), "=q"(b), "+r"(x), "+r"(y), "+m"(memory[1])::"cc");
        ok[4] &= a == (x < 1) && b == (x == 1);
        /* unordered comparison: PF, then ZF, then CF, each in a block of its own */
        double d = lap % 3 == 0 ? __builtin_nan("") : lap % 3, one = 1;
        __asm__ volatile("xor %k0, %k0; ucomisd %2, %1; jp 1f; mov %3, %4; jne 2f; mov $1, %k0; jmp 3f; 1: mov $2, %k0; jmp 3f; 2: mov %3, %4; ja 4f; mov $3, %k0; jmp 3f; 4: mov $4, %k0; 3:"
                         : "=&r"(z) : "x"(d), "x"(one), "r"(y), "m"(memory[2]) : "cc", "memory");
        ok[5] &= (int)z == (lap % 3 == 0 ? 2 : lap % 3 == 1 ? 1 : 4);
        /* sbb of a register with itself */
        __asm__ volatile("cmp $1, %1; mov %3, %2; sbb %0, %0" : "=r"(z), "+r"(x), "=m"(memory[1]) : "r"(y) : "cc");
        ok[6] &= z == (x < 1 ? -1 : 0);
        /* bt and a conditional move after a load */
        __asm__ volatile("bt %2, %1; mov %4, %3; mov $5, %k0; cmovc %3, %0" : "=&r"(z) : "r"(0x5555555555555555ul), "r"((long)lap & 63), "r"(y), "m"(memory[3]) : "cc");
        ok[7] &= (lap & 1) ? z == 5 : 1;
        /* rotates by one write CF and OF only */
        __asm__ volatile("test %1, %1; rol %2; mov %2, %3; setz %0" : "=q"(a), "+r"(x), "+r"(y), "=m"(memory[1])::"cc");
        ok[8] &= a == (x == 0);
        /* not writes none */
        __asm__ volatile("cmp $1, %2; not %3; mov %3, %4; not %3; setc %0; setz %1" : "=q"(a), "=q"(b), "+r"(x), "+r"(y), "=m"(memory[1])::"cc");
        ok[9] &= a == (x < 1) && b == (x == 1);
        /* pushes, pops and stores of every kind between */
        __asm__ volatile("lea -128(%%rsp), %%rsp; cmp $1, %1; push %2; push %3; pop %3; pop %2; movups %%xmm0, -64(%%rsp); setc %0; lea 128(%%rsp), %%rsp"
                         : "=q"(a), "+r"(x), "+r"(y), "+r"(z)::"cc", "memory");
        ok[10] &= a == (x < 1);
        /* one compare, three ways out */
        long v = lap % 3 - 1;
        __asm__ volatile("cmp $0, %1; mov %3, %2; jl 1f; mov %3, %2; jg 2f; mov $10, %k0; jmp 3f; 1: mov $11, %k0; jmp 3f; 2: mov $12, %k0; 3:"
                         : "=&r"(z), "+r"(v), "=m"(memory[1]) : "r"(y) : "cc");
        ok[11] &= z == (v < 0 ? 11 : v > 0 ? 12 : 10);
        /* fcomi sets them, fstp and stores leave them */
        long double l = lap % 2, h = 0.5L;
        __asm__ volatile("fldt %2; fldt %1; fcomip %%st(1), %%st; fstp %%st; mov %3, %4; seta %0" : "=q"(a) : "m"(l), "m"(h), "r"(y), "m"(memory[1]) : "cc", "memory");
        ok[12] &= a == (lap % 2 == 1);
        /* three set instructions on one compare, with stores to memory between */
        __asm__ volatile("cmp $1, %3; setb %0; mov %4, %5; sete %1; mov %4, %5; seta %2" : "=q"(a), "=q"(b), "=q"(c), "+r"(x) : "r"(y), "m"(memory[1]) : "cc", "memory");
        ok[13] &= a + b + c == 1 && b == (x == 1);
        /* an indirect jump between compare and use */
        __asm__ volatile("lea 1f(%%rip), %%rdx; test $1, %b1; lea 2f(%%rip), %%rcx; cmovnz %%rcx, %%rdx; cmp $1, %1; jmp *%%rdx; 1: setc %0; jmp 3f; 2: setc %0; 3:"
                         : "=q"(a), "+r"(x)::"rcx", "rdx", "cc");
        ok[14] &= a == (x < 1);
    }
    SHOW("inc keeps CF %d, dec loop with adc %d, far %d, chain %d, both sides %d, unordered %d, sbb mask %d, bt cmov %d", ok[0], ok[1], ok[2], ok[3],
         ok[4], ok[5], ok[6], ok[7]);
    SHOW("rotate keeps ZF %d, not keeps all %d, after a store %d, three way %d, x87 %d, setcc pair %d, jump table %d", ok[8], ok[9], ok[10], ok[11],
         ok[12], ok[13], ok[14]);
    return 0;
}
