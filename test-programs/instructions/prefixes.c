/* Odd encodings that compilers and assemblers emit: repz ret, data16 padding, multi-byte nops, endbr64, notrack, bnd,
 * branch hints, addr32 operands, redundant rex, segment overrides, xacquire/xrelease, wait prefixes.
 * Answer: below. */
//@ stdout: ok 7 addr32 1
#include "micro.h"
__asm__("odd: .byte 0xf3,0x0f,0x1e,0xfa\n"      /* endbr64 */
        ".byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0\n" /* long nop */
        ".byte 0x66,0x48,0x8d,0x07\n"            /* data16 lea rax,[rdi] */
        ".byte 0x2e,0x74,0x02\n .byte 0x66,0x90\n" /* je,pn */
        ".byte 0x3e,0xff,0xe2\n"                 /* notrack jmp *rdx */
        "odd_end: .byte 0x40,0x48,0x83,0xc0,0x01\n" /* redundant rex; add rax,1 */
        ".byte 0xf2,0xe8,1,0,0,0\n .byte 0xc3\n"  /* bnd call +1; ret after it */
        ".byte 0x48,0x83,0xc0,0x01\n"            /* callee: add rax,1 */
        ".byte 0xf3,0xc3\n");                    /* repz ret */
long odd(long, long, void *);
extern char odd_end[];
int main(void) {
    long r = 0;
    for (int i = 0; i < LAPS; i++) r = odd(5, 0, odd_end);
    static int low;
    int got = 1;
    long wide = 0x500000000 + 8;
    /* addr32: the upper half of the base is ignored */
    __asm__ volatile("lea (%%ecx), %%eax" : "=a"(got) : "c"(wide));
    __asm__ volatile("xacquire lock addl $1, %0; xrelease lock subl $1, %0; nop; fwait; cs nop; ds nop" : "+m"(low)::"cc");
    SHOW("ok %ld addr32 %d", r, got == 8 && low == 0);
    return 0;
}
