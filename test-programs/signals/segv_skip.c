/* A SIGSEGV handler that edits ucontext: skips the faulting load by moving rip and gives its result in rax.
 * 100,000 faults. Answer: the sum of the results given. */
//@ stdout: sum 4999950000, faults 100000, address 1, pc 1
//@ repeat: 2
#include "../check.h"
#include <signal.h>
#include <ucontext.h>

extern char load_here[], load_end[];
static volatile long faults;
static volatile int address_right = 1, pc_right = 1;
static void on_segv(int s, siginfo_t *i, void *u) {
    (void)s;
    greg_t *g = ((ucontext_t *)u)->uc_mcontext.gregs;
    if (i->si_addr != (void *)0x123450) address_right = 0;
    if (g[REG_RIP] != (greg_t)load_here || g[REG_RBX] != 0x123450) pc_right = 0;
    g[REG_RIP] = (greg_t)load_end;
    g[REG_RAX] = faults++;
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, 0);
    long sum = 0;
    for (int i = 0; i < 100000; i++) {
        long got = -1;
        __asm__ volatile(".globl load_here, load_end\nload_here: mov (%%rbx), %%rax\nload_end:\n"
                         : "+a"(got)
                         : "b"(0x123450));
        sum += got;
    }
    printf("sum %ld, faults %ld, address %d, pc %d\n", sum, faults, address_right, pc_right);
    return 0;
}
