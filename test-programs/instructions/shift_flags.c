/* Shifts and rotates by CL = 0 (and by a masked count of 0) leave all flags; so do rep cmps/scas with rcx = 0.
 * Answer: every one of 18 forms keeps CF, ZF, OF as they were. */
//@ stdout: kept 18
#include "micro.h"
#define KEEPS(code) \
    ({ \
        unsigned char c, z, o; \
        unsigned long x = 0x80, y = 3; \
        __asm__ volatile("mov $0x7f, %%al; add $1, %%al; cmp %%rdx, %%rdx; stc; mov %5, %%ecx; " code \
                         "; setc %0; setz %1; seto %2" \
                         : "=q"(c), "=q"(z), "=q"(o), "+r"(x), "+r"(y) \
                         : "r"(zero) \
                         : "rax", "rcx", "rdi", "rsi", "cc", "memory"); \
        c && z && !o && x == 0x80; \
    })
int main(void) {
    int kept = 0;
    for (int lap = 0; lap < 100; lap++) {
        volatile int z0 = lap % 2 ? 64 : 0;
        int zero = z0;
        kept = KEEPS("shl %%cl, %3") + KEEPS("shr %%cl, %3") + KEEPS("sar %%cl, %3") + KEEPS("rol %%cl, %3") +
               KEEPS("ror %%cl, %3") + KEEPS("rcl %%cl, %3") + KEEPS("rcr %%cl, %3") + KEEPS("shld %%cl, %4, %3") +
               KEEPS("shrd %%cl, %4, %3") + KEEPS("shl $0, %3") + KEEPS("shr $0, %3") + KEEPS("rol $0, %3");
        zero = lap % 2 ? 32 : 0;
        kept += KEEPS("mov $0x80, %k3; shl %%cl, %k3") + KEEPS("ror %%cl, %k3");
        zero = 0;
        kept += KEEPS("repe cmpsb") + KEEPS("repne scasb") + KEEPS("repe cmpsq") + KEEPS("repne scasl");
        if (kept != 18) break;
    }
    SHOW("kept %d", kept);
    return 0;
}
