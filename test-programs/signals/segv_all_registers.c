/* At a fault the handler sees every register of the program, and what it writes into each arrives.
 * Answer: all 15 seen, all 15 changed, flags and xmm0 too. */
//@ stdout: seen 15, changed 15, flags 1, xmm 1
//@ repeat: 3
#include "../check.h"
#include <signal.h>
#include <ucontext.h>

static const int order[15] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP, REG_R8,
                              REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
static volatile int seen, flags_seen;
__attribute__((used)) static long after[16];
static unsigned long xmm_before[2] = {0x1111222233334444, 0x5555666677778888}, xmm_after[2];
static void on_segv(int s, siginfo_t *i, void *u) {
    (void)s, (void)i;
    mcontext_t *m = &((ucontext_t *)u)->uc_mcontext;
    seen = 0;
    for (int k = 0; k < 15; k++) {
        long want = k == 0 ? 0 : 0x1000 + k;
        seen += m->gregs[order[k]] == want;
        m->gregs[order[k]] = 0x7000 + k;
    }
    flags_seen = (m->gregs[REG_EFL] & 0x8d5) == 0x45; /* CF, PF, ZF set; AF, SF, OF clear */
    m->gregs[REG_EFL] ^= 0x41;                         /* now CF and ZF clear */
    flags_seen += memcmp(&m->fpregs->_xmm[0], xmm_before, 16) == 0;
    unsigned long x[2] = {42, 43};
    memcpy(&m->fpregs->_xmm[0], x, 16);
    m->gregs[REG_RIP] += 2; /* movb (%rax),%al is two bytes */
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, 0);
    unsigned char cf, zf;
    int rounds = 0, changed = 0;
    for (; rounds < 100; rounds++) {
        __asm__ volatile(
            "push %%rbp\n"
            "movups %[xb], %%xmm0\n"
            "mov $0x1001, %%ebx\n mov $0x1002, %%ecx\n mov $0x1003, %%edx\n mov $0x1004, %%esi\n"
            "mov $0x1005, %%edi\n mov $0x1006, %%ebp\n mov $0x1007, %%r8d\n mov $0x1008, %%r9d\n"
            "mov $0x1009, %%r10d\n mov $0x100a, %%r11d\n mov $0x100b, %%r12d\n mov $0x100c, %%r13d\n"
            "mov $0x100d, %%r14d\n mov $0x100e, %%r15d\n"
            "xor %%eax, %%eax\n stc\n"
            "movb (%%rax), %%al\n"
            "mov %%rbp, after+48(%%rip)\n"
            "pop %%rbp\n"
            "mov %%rax, after(%%rip)\n mov %%rbx, after+8(%%rip)\n mov %%rcx, after+16(%%rip)\n"
            "mov %%rdx, after+24(%%rip)\n mov %%rsi, after+32(%%rip)\n mov %%rdi, after+40(%%rip)\n"
            "mov %%r8, after+56(%%rip)\n mov %%r9, after+64(%%rip)\n mov %%r10, after+72(%%rip)\n"
            "mov %%r11, after+80(%%rip)\n mov %%r12, after+88(%%rip)\n mov %%r13, after+96(%%rip)\n"
            "mov %%r14, after+104(%%rip)\n mov %%r15, after+112(%%rip)\n"
            "movups %%xmm0, %[xa]\n"
            "setc %[cf]\n setz %[zf]\n"
            : [cf] "=m"(cf), [zf] "=m"(zf), [xa] "=m"(xmm_after), "+m"(after)
            : [xb] "m"(xmm_before)
            : "rax", "rbx", "rcx", "rdx", "rsi", "rdi", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "xmm0",
              "memory", "cc");
        changed = 0;
        for (int k = 0; k < 15; k++) changed += after[k] == 0x7000 + k;
        if (seen != 15 || changed != 15 || flags_seen != 2 || cf || zf || xmm_after[0] != 42 || xmm_after[1] != 43) break;
    }
    printf("seen %d, changed %d, flags %d, xmm %d\n", seen, changed, flags_seen == 2 && !cf && !zf,
           xmm_after[0] == 42 && xmm_after[1] == 43);
    return rounds != 100;
}
