/* Flags carried across a call, a return, direct, indirect and conditional jumps in hand-written code: hand-written
 * assembly may do so, whatever the ABI says. Answer: below. */
//@ stdout: call 1, ret 1, jmp 1, indirect 1, table 1, adc chain 1
#include "micro.h"
__asm__("takes_cf: setc %al; movzbl %al, %eax; ret\n"
        "gives_cf: stc; ret\n"
        "through: jmp *%rdx\n"
        "lands: setc %al; setz %ah; ret\n");
int main(void) {
    int a = 1, b = 1, c = 1, d = 1, e = 1, f = 1;
    for (int lap = 0; lap < LAPS; lap++) {
        int r;
        unsigned char cf;
        unsigned short ax;
#define CALLRED "lea -128(%%rsp), %%rsp; "
#define UNRED "; lea 128(%%rsp), %%rsp"
        __asm__ volatile(CALLRED "stc; call takes_cf" UNRED : "=a"(r)::"memory", "cc");
        a &= r == 1;
        __asm__ volatile(CALLRED "clc; call gives_cf; setc %0" UNRED : "=q"(cf)::"memory", "cc");
        b &= cf;
        __asm__ volatile("stc; jmp 1f; 1: setc %0" : "=q"(cf)::"cc");
        c &= cf;
        __asm__ volatile(CALLRED "lea lands(%%rip), %%rdx; cmp %%rdx, %%rdx; stc; call through" UNRED : "=a"(ax)::"rdx", "memory", "cc");
        d &= ax == 0x0101;
        __asm__ volatile("lea 1f(%%rip), %%rdx; mov $0x7f, %%al; add $1, %%al; jmp *%%rdx; 1: seto %0" : "=q"(cf)::"rax", "rdx", "cc");
        e &= cf;
        unsigned long lo = ~0ul, hi = 5, n = 3;
        __asm__ volatile("add $1, %0; 1: lea -1(%2), %2; jrcxz 2f; 2: adc $0, %1" : "+r"(lo), "+r"(hi), "+c"(n)::"cc");
        f &= lo == 0 && hi == 6;
    }
    SHOW("call %d, ret %d, jmp %d, indirect %d, table %d, adc chain %d", a, b, c, d, e, f);
    return 0;
}
