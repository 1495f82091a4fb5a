/* cpuid gives what it gives natively (leaf 0, features, extended state sizes); rbx, rcx and upper halves are as
 * the processor leaves them. Answer: compared with the native run; bits that depend on the processor are masked. */
#include "micro.h"
int main(void) {
    unsigned a, b, c, d;
    for (unsigned leaf = 0; leaf <= 0x1d; leaf++) {
        if (leaf == 0xb || leaf == 4 || leaf == 0x1a) continue;
        __cpuid_count(leaf, 0, a, b, c, d);
        if (leaf == 1) b &= 0x00ffffff; /* APIC id */
        SHOW("%x %x %x %x %x", leaf, a, b, c, d);
    }
    for (unsigned leaf = 0x80000000; leaf <= 0x80000008; leaf++) {
        __cpuid(leaf, a, b, c, d);
        SHOW("%x %x %x %x %x", leaf, a, b, c, d);
    }
    unsigned long ra = 0xffffffff00000000, rb = ~0ul, rc = 0xffffffff00000000, rd = ~0ul;
    __asm__ volatile("cpuid" : "+a"(ra), "+b"(rb), "+c"(rc), "+d"(rd));
    SHOW("upper halves %lx %lx %lx %lx", ra >> 32, rb >> 32, rc >> 32, rd >> 32);
    unsigned lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    SHOW("xcr0 %x:%x", hi, lo);
    return 0;
}
