/* Partial registers and operand sizes: ah/bh/ch/dh, 8/16/32-bit writes and their effect on the upper bits, movsx, cmov
 * with 32-bit destinations, xlat, xchg, bswap, cbw/cwd/cdq/cqo, movbe, popcnt, lzcnt, tzcnt, bmi2, crc32, rdrand.
 * Answer: a checksum of all results (rdrand only has to say that it worked). */
//@ flags: -mbmi -mbmi2 -mlzcnt -mpopcnt -msse4.2 -mmovbe -mrdrnd
//@ cpu: bmi2
//@ stdout: checksum dc71937b7ca0164 random 1
#include "micro.h"
#include <immintrin.h>
static unsigned long sum = 1;
static void mix(unsigned long v) { sum = (sum ^ v) * 0x9e3779b97f4a7c15ul; }
int main(void) {
    int random = 1;
    for (unsigned long i = 1; i < 2000; i++) {
        unsigned long a = i * 0x123456789abcdeful, b = ~a, c = a >> 7, d = i;
        __asm__ volatile("mov %%ah, %%bl; add %%dl, %%bh; xchg %%ch, %%cl; movb $5, %%dh; xor %%ah, %%dl" : "+a"(a), "+b"(b), "+c"(c), "+d"(d)::"cc");
        mix(a), mix(b), mix(c), mix(d);
        __asm__ volatile("movw $7, %w0; movl %k0, %k1; cmp %2, %3; cmovbl %k2, %k1; cmovaeq %3, %2" : "+r"(a), "+r"(b), "+r"(c), "+r"(d)::"cc");
        mix(a), mix(b), mix(c), mix(d);
        static unsigned char table[256];
        for (int k = 0; k < 256; k++) table[k] = (unsigned char)(k ^ 0x5a);
        __asm__ volatile("xlat; cbw; cwde; cdqe; cqo; bswap %%rdx; movsbl %%cl, %%ecx" : "+a"(a), "+d"(d), "+c"(c) : "b"(table) : "memory");
        mix(a), mix(c), mix(d);
        mix(_pext_u64(a * 77, i * 12345)), mix(_pdep_u64(a, i * 54321)), mix(_popcnt64(a)), mix(_lzcnt_u64(i)), mix(_tzcnt_u64(i << 3));
        mix(_bzhi_u64(a, i % 64)), mix(_mm_crc32_u64(i, a)), mix(_blsr_u64(i)), mix(_andn_u64(a, i));
        unsigned long be = 0;
        __asm__ volatile("movbe %1, %0; rorx $13, %0, %0; shlx %2, %0, %0" : "=&r"(be) : "m"(i), "r"(i));
        mix(be);
        unsigned long lo = i, hi;
        __asm__ volatile("mulx %2, %0, %1" : "+r"(lo), "=r"(hi) : "r"(i * 3), "d"(a));
        mix(lo), mix(hi);
        unsigned char bit;
        __asm__ volatile("bt %2, %1; setc %0; bsf %2, %1" : "=q"(bit), "+r"(d) : "r"(i) : "cc");
        mix(bit), mix(d);
        unsigned r;
        if (i % 100 == 0) random &= _rdrand32_step(&r);
    }
    SHOW("checksum %lx random %d", sum, random);
    return 0;
}
