/* Timers whose handler takes four of their periods: natively this program would never end, for a signal waits whenever
 * a handler returns. A profiler that makes handlers slow makes such programs of others, and has to let them go on: in
 * loops, in system calls, in handlers that were interrupted, across forks, and where they wait for signals. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 3, ADDITIONS = 2000000 };
static volatile long signals;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

static void on_signal(int s) {
    (void)s;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
    for (long end = now() + 200000; now() < end;) {}
}

/* A thread with a timer of its own, beside the process's, whose signals it gets when the first thread blocks them. */
static void *work(void *sum) {
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR2};
    event._sigev_un._tid = gettid();
    struct itimerspec times = {{0, 50000}, {0, 50000}};
    timer_t timer;
    timer_create(CLOCK_MONOTONIC, &event, &timer);
    timer_settime(timer, 0, &times, 0);
    volatile long s = 0;
    for (int i = 0; i < ADDITIONS; i++) s += i;
    timer_delete(timer);
    *(long *)sum = s;
    return 0;
}

int main(void) {
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    struct itimerval times = {{0, 50}, {0, 50}}, none = {{0, 0}, {0, 0}};
    int p[2], bad = pipe(p) != 0;
    sigaction(SIGALRM, &sa, 0);
    sigaction(SIGUSR2, &sa, 0);
    setitimer(ITIMER_REAL, &times, 0);
    for (int i = 0; i < ROUNDS; i++) {
        pthread_t thread;
        long sum = 0;
        char c = 'x';
        bad += pthread_create(&thread, 0, work, &sum) != 0;
        pid_t child = fork();
        if (!child) _exit(7);
        int status = 0;
        bad += waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 7;
        bad += write(p[1], &c, 1) != 1 || read(p[0], &c, 1) != 1;
        bad += pthread_join(thread, 0) != 0 || sum != (long)ADDITIONS * (ADDITIONS - 1) / 2;
        sigset_t all_open;
        sigemptyset(&all_open);
        long before = signals;
        sigsuspend(&all_open);
        bad += signals == before;
    }
    setitimer(ITIMER_REAL, &none, 0);
    printf("bad %d\n", bad);
    return 0;
}
