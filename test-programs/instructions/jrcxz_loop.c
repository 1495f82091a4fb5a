/* jrcxz, jecxz, loop, loope, loopne: taken and not, at block ends, with flags live across.
 * Answer: below. */
//@ stdout: jrcxz 1, jecxz 1, loop 5050, loope 1, loopne 1, flags 1
#include "micro.h"
int main(void) {
    int jr = 1, je = 1, le = 1, lne = 1, fl = 1;
    long sum = 0;
    for (int lap = 0; lap < LAPS; lap++) {
        int r;
        __asm__ volatile("xor %0, %0; mov %1, %%rcx; jrcxz 1f; mov $1, %0; 1:" : "=&r"(r) : "r"((long)(lap & 1)) : "rcx");
        jr &= r == (lap & 1);
        __asm__ volatile("xor %0, %0; mov $0x100000000, %%rcx; jecxz 1f; mov $1, %0; 1:" : "=&r"(r)::"rcx");
        je &= r == 0;
        long c = 100;
        sum = 0;
        __asm__ volatile("1: add %1, %0; loop 1b" : "+r"(sum), "+c"(c));
        static const char text[] = "aaaaabbbbb";
        const char *p = text;
        c = 10;
        __asm__ volatile("1: cmpb $'a', (%0); lea 1(%0), %0; loope 1b" : "+r"(p), "+c"(c)::"cc", "memory");
        le &= p == text + 6 && c == 4;
        p = text;
        c = 10;
        __asm__ volatile("1: cmpb $'b', (%0); lea 1(%0), %0; loopne 1b" : "+r"(p), "+c"(c)::"cc", "memory");
        lne &= p == text + 6 && c == 4;
        unsigned char cf, of;
        c = 3;
        __asm__ volatile("mov $0x7f, %%al; add $1, %%al; stc; 1: loop 1b; jrcxz 2f; 2: setc %0; seto %1"
                         : "=q"(cf), "=q"(of), "+c"(c)::"rax", "cc");
        fl &= cf && of;
    }
    SHOW("jrcxz %d, jecxz %d, loop %ld, loope %d, loopne %d, flags %d", jr, je, sum, le, lne, fl);
    return 0;
}
