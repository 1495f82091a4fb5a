// A program with a profiler of its own: SIGPROF from an interval timer, SIGTRAP raised and handled, and a thread that
// blocks every signal. Prints whether all of it worked.
#include "idle.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t ticks, traps;
static void on_tick(int number) { ticks = ticks + 1; }
static void on_trap(int number) { traps = traps + 1; }

__attribute__((noinline)) uint64_t deaf(void) { return burn(0.2) + 1; }

static void *blocked(void *unused) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, 0);
    return (void *)deaf();
}

int main(void) {
    struct sigaction action = {.sa_handler = on_tick, .sa_flags = SA_RESTART};
    sigaction(SIGPROF, &action, 0);
    action.sa_handler = on_trap;
    sigaction(SIGTRAP, &action, 0);
    struct itimerval timer = {{0, 5000}, {0, 5000}};
    setitimer(ITIMER_PROF, &timer, 0);
    pthread_t t;
    pthread_create(&t, 0, blocked, 0);
    for (int i = 0; i < 20; i++) burn(0.01), raise(SIGTRAP);
    pthread_join(t, 0);
    printf("%d %d\n", ticks > 10, traps);
}
