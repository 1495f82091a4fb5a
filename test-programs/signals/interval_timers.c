/* timer_create with a thread target, SIGEV_SIGNAL with values, timerfd, setitimer VIRTUAL and PROF.
 * Answer: all arrive. */
//@ flags: -pthread
//@ stdout: posix timer 5 value 33, thread timer 1, timerfd 1, virtual 1, prof 1
//@ repeat: 3
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>

static volatile int posix_hits, value, virtual_hits, prof_hits;
static int thread_hits;
static void on_rt(int s, siginfo_t *i, void *u) {
    (void)s, (void)u;
    if (posix_hits < 5) posix_hits++;
    value = i->si_value.sival_int;
}
static void on_virtual(int s) {
    (void)s;
    virtual_hits = 1;
}
static void on_prof(int s) {
    (void)s;
    prof_hits = 1;
}
static void notify(union sigval v) { __atomic_store_n((int *)v.sival_ptr, 1, __ATOMIC_SEQ_CST); }
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_rt, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGRTMIN, &sa, 0);
    struct sigevent ev = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 33};
    timer_t t;
    CHECK(timer_create(CLOCK_MONOTONIC, &ev, &t) == 0);
    struct itimerspec its = {{0, 1000000}, {0, 1000000}};
    timer_settime(t, 0, &its, 0);
    while (posix_hits < 5) usleep(500);
    timer_delete(t);
    struct sigevent by_thread = {.sigev_notify = SIGEV_THREAD, .sigev_notify_function = notify, .sigev_value.sival_ptr = &thread_hits};
    CHECK(timer_create(CLOCK_MONOTONIC, &by_thread, &t) == 0);
    its.it_interval.tv_nsec = 0;
    timer_settime(t, 0, &its, 0);
    while (!__atomic_load_n(&thread_hits, __ATOMIC_SEQ_CST)) usleep(500);
    int fd = timerfd_create(CLOCK_MONOTONIC, 0);
    timerfd_settime(fd, 0, &its, 0);
    uint64_t n;
    CHECK(read(fd, &n, 8) == 8);
    signal(SIGVTALRM, on_virtual);
    signal(SIGPROF, on_prof);
    struct itimerval it = {{0, 2000}, {0, 2000}};
    setitimer(ITIMER_VIRTUAL, &it, 0);
    setitimer(ITIMER_PROF, &it, 0);
    for (volatile long i = 0; !virtual_hits || !prof_hits; i++) {
    }
    printf("posix timer %d value %d, thread timer %d, timerfd %d, virtual %d, prof %d\n", posix_hits, value, thread_hits,
           (int)n, virtual_hits, prof_hits);
    return 0;
}
