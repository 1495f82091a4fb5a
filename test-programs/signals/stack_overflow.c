/* Stack overflow by recursion, caught on the alternate stack and left by siglongjmp, 20 times.
 * Answer: every one caught, depth plausible. */
//@ flags: -O0 -Wno-infinite-recursion
//@ stdout: caught 20, deep 1
//@ repeat: 3
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>

static sigjmp_buf out;
static volatile long depth;
static void on_segv(int s, siginfo_t *i, void *u) {
    (void)s, (void)u;
    CHECK(i->si_addr != 0);
    siglongjmp(out, 1);
}
static int deeper(int n) {
    volatile char room[512];
    room[0] = (char)n;
    depth++;
    return deeper(n + 1) + room[0];
}
int main(void) {
    struct rlimit r;
    getrlimit(RLIMIT_STACK, &r);
    r.rlim_cur = 1 << 20;
    setrlimit(RLIMIT_STACK, &r);
    stack_t st = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&st, 0);
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_ONSTACK | SA_SIGINFO};
    sigaction(SIGSEGV, &sa, 0);
    volatile int caught = 0;
    for (volatile int i = 0; i < 20; i++)
        if (sigsetjmp(out, 1) == 0)
            deeper(0);
        else
            caught++;
    printf("caught %d, deep %d\n", caught, depth > 20 * 1000);
    return 0;
}
