/* siglongjmp out of a timer handler, 1000 times, from computation, malloc-free code and system calls: the mask
 * comes back with it, nothing of the handler's stack stays. Answer: below. */
//@ stdout: jumps 1000, mask clear 1
//@ repeat: 2
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>

static sigjmp_buf out;
static volatile int armed, jumps;
static void on_alarm(int s) {
    (void)s;
    if (armed) {
        armed = 0;
        siglongjmp(out, 1);
    }
}
__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) {
    struct sigaction sa = {.sa_handler = on_alarm};
    sigaction(SIGALRM, &sa, 0);
    struct itimerval it = {{0, 300}, {0, 300}};
    setitimer(ITIMER_REAL, &it, 0);
    while (jumps < 1000) {
        if (sigsetjmp(out, 1)) {
            jumps++;
            continue;
        }
        armed = 1;
        if (jumps % 3 == 2)
            for (;;) getppid();
        for (;;) fib(10 + jumps % 10);
    }
    it.it_interval.tv_usec = it.it_value.tv_usec = 0;
    setitimer(ITIMER_REAL, &it, 0);
    sigset_t m;
    sigprocmask(SIG_BLOCK, 0, &m);
    printf("jumps %d, mask clear %d\n", jumps, !sigismember(&m, SIGALRM));
    return 0;
}
