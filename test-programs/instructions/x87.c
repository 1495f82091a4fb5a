/* x87: eight-deep stack, long double arithmetic, comparisons into flags, control and status words, fnsave/frstor,
 * fxsave. Answer: below. */
//@ flags: -lm
//@ stdout: sum 36 sqrt 1.4142135623730950488 cmp 1 cw 37f fxsave 1 fnsave 1 fild 1
#include "micro.h"
#include <math.h>
int main(void) {
    int sum = 0, cmp = 0, fx = 0, fn = 0, fild = 0;
    long double root = 0;
    unsigned short cw = 0;
    static unsigned char area[512] __attribute__((aligned(64))), small[108];
    for (int i = 0; i < LAPS; i++) {
        __asm__ volatile("fninit\n fldz\n fld1\n fld1\n fadd %%st(1)\n fld1\n fadd %%st(1)\n fld1\n fadd %%st(1)\n"
                         "fld1\n fadd %%st(1)\n fld1\n fadd %%st(1)\n fld1\n fadd %%st(1)\n"
                         "faddp\n faddp\n faddp\n faddp\n faddp\n faddp\n faddp\n fistpl %0\n" : "=m"(sum));
        sum += 8;
        static volatile long double two = 2;
        __asm__ volatile("fldt %1\n fsqrt\n fstpt %0" : "=m"(root) : "m"(two));
        unsigned char c;
        __asm__ volatile("fld1\n fldz\n fcomip %%st(1), %%st\n setb %0\n fstp %%st" : "=r"(c));
        cmp = c;
        __asm__ volatile("fnstcw %0" : "=m"(cw));
        long back = 0;
        __asm__ volatile("fninit; fld1; fxsave %0; fninit; fxrstor %0; fistpq %1" : "+m"(area), "=m"(back));
        fx = back == 1;
        __asm__ volatile("fld1; fld1; faddp; fnsave %0; frstor %0; fistpq %1; fninit" : "+m"(small), "=m"(back));
        fn = back == 2;
        long big = 0x7fffffffffffffff, r;
        __asm__ volatile("fildq %1; fistpq %0" : "=m"(r) : "m"(big));
        fild = r == big;
    }
    SHOW("sum %d sqrt %.19Lf cmp %d cw %x fxsave %d fnsave %d fild %d", sum, root, cmp, cw, fx, fn, fild);
    return 0;
}
