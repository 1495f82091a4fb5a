/* A signal that cannot be delivered, the alternate stack being unmapped: the kernel kills with SIGSEGV.
 * Answer: killed by SIGSEGV. */
//@ stdout: about to die
//@ signal: SIGSEGV
#include "../check.h"
#include <signal.h>
#include <sys/mman.h>

static void never(int s) {
    (void)s;
    _exit(98);
}
int main(void) {
    char *p = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    stack_t st = {.ss_sp = p, .ss_size = 65536};
    sigaltstack(&st, 0);
    munmap(p, 65536);
    struct sigaction sa = {.sa_handler = never, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &sa, 0);
    puts("about to die");
    fflush(stdout);
    raise(SIGUSR1);
    return 0;
}
