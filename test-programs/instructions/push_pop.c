/* push and pop with rsp operands, memory operands relative to rsp, 16-bit forms, pushfq/popfq, enter/leave, xchg.
 * Answer: below. */
//@ stdout: push rsp 1, pop rsp 1, push [rsp] 1, pop [rsp+8] 1, 16-bit 1, flags 1, leave 1, enter 1
#include "micro.h"
int main(void) {
    int a = 1, b = 1, c = 1, d = 1, e = 1, f = 1, g = 1, h = 1;
    for (int lap = 0; lap < LAPS; lap++) {
        unsigned long r, s;
#define RED "lea -256(%%rsp), %%rsp; "
#define UNRED "; lea 256(%%rsp), %%rsp"
        __asm__ volatile(RED "mov %%rsp, %1; push %%rsp; pop %0" UNRED : "=&c"(r), "=&d"(s)::"memory");
        a &= r == s;
        __asm__ volatile(RED "mov %%rsp, %1; lea -64(%%rsp), %%rax; push %%rax; pop %%rsp; mov %%rsp, %0; mov %1, %%rsp" UNRED
                         : "=&c"(r), "=&d"(s)::"memory", "rax");
        b &= r == s - 64;
        __asm__ volatile(RED "push $77; push (%%rsp); pop %0; pop %1" UNRED : "=&c"(r), "=&d"(s)::"memory");
        c &= r == 77 && s == 77;
        __asm__ volatile(RED "push $1; push $2; push $3; pop 8(%%rsp); pop %0; pop %1" UNRED : "=&c"(r), "=&d"(s)::"memory");
        d &= r == 2 && s == 3; /* the address of pop is computed after rsp moves */
        __asm__ volatile(RED "mov %%rsp, %1; pushw $0x1234; mov %%rsp, %0; popw %%ax; movzwl %%ax, %%eax; sub %0, %1; shl $16, %1; or %%rax, %1" UNRED
                         : "=&c"(r), "=&d"(s)::"memory", "rax", "cc");
        e &= s == ((2ul << 16) | 0x1234);
        unsigned char cf, zf;
        __asm__ volatile(RED "stc; pushfq; clc; popfq; setc %0; cmp %%rax, %%rax; pushfq; orl $1, (%%rsp); popfq; setz %1" UNRED
                         : "=q"(cf), "=q"(zf)::"memory", "cc");
        f &= cf && zf;
        __asm__ volatile(RED "mov %%rsp, %1; push %%rbp; mov %%rsp, %%rbp; sub $48, %%rsp; leave; mov %%rsp, %0" UNRED
                         : "=&c"(r), "=&d"(s)::"memory", "cc");
        g &= r == s;
        __asm__ volatile(RED "mov %%rsp, %1; enter $32, $0; mov %%rsp, %0; leave" UNRED : "=&c"(r), "=&d"(s)::"memory", "cc");
        h &= r == s - 40;
    }
    SHOW("push rsp %d, pop rsp %d, push [rsp] %d, pop [rsp+8] %d, 16-bit %d, flags %d, leave %d, enter %d", a, b, c, d, e, f, g, h);
    return 0;
}
