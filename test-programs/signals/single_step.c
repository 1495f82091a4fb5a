/* A program that sets the trap flag on itself gets one SIGTRAP per instruction, at the right addresses.
 * Answer: 5 traps after 5 instructions. */
//@ stdout: traps 5, in order 1
#include "../check.h"
#include <signal.h>
#include <ucontext.h>

static volatile int traps, in_order = 1;
static long last;
static void on_trap(int s, siginfo_t *i, void *u) {
    (void)s;
    long pc = ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP];
    traps++;
    if (i->si_code != TRAP_TRACE || (last && pc <= last)) in_order = 0;
    last = pc;
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    sigaction(SIGTRAP, &sa, 0);
    __asm__ volatile("lea -128(%%rsp), %%rsp\n pushfq\n orl $0x100, (%%rsp)\n popfq\n"
                     "nop\n nop\n pushfq\n andl $~0x100, (%%rsp)\n popfq\n lea 128(%%rsp), %%rsp\n" ::
                         : "memory", "cc");
    printf("traps %d, in order %d\n", traps, in_order);
    return 0;
}
