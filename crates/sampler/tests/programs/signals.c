/* A program that is particular about signals. Its output must be the same under a profiler. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t counts[65];
static void count(int s) { counts[s]++; }
static void inform(int s, siginfo_t *i, void *c) { counts[s] += i->si_value.sival_int; }

static volatile unsigned long sink;
__attribute__((noinline)) static void burn(int ms) {
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    do {
        for (int i = 0; i < 10000; i++)
            sink = sink * 3 + 1;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    } while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}

static void *waiter(void *arg) {
    sigset_t all;
    sigfillset(&all);
    int s = 0, r = sigwait(&all, &s);
    return (void *)(long)(r * 1000 + s);
}

int main(void) {
    /* every real-time signal is the program's, one- and three-argument handlers */
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++) {
        struct sigaction a = {0}, old;
        if (s & 1)
            a.sa_handler = count;
        else
            a.sa_sigaction = inform, a.sa_flags = SA_SIGINFO;
        sigfillset(&a.sa_mask);
        if (sigaction(s, &a, &old) || old.sa_handler != SIG_DFL)
            printf("signal %d was not at its default\n", s);
        sigaction(s, 0, &old);
        if ((s & 1 ? (void *)old.sa_handler != (void *)count : (void *)old.sa_sigaction != (void *)inform))
            printf("signal %d reads back wrong\n", s);
    }
    burn(30);
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        sigqueue(getpid(), s, (union sigval){.sival_int = 1});
    burn(30);
    int sum = 0;
    for (int s = SIGRTMIN; s <= SIGRTMAX; s++)
        sum += counts[s] == 1;
    printf("delivered %d\n", sum == SIGRTMAX - SIGRTMIN + 1);

    /* a profiling timer of its own */
    signal(SIGPROF, count);
    struct itimerval timer = {{0, 10000}, {0, 10000}};
    setitimer(ITIMER_PROF, &timer, 0);
    burn(300);
    timer = (struct itimerval){0};
    setitimer(ITIMER_PROF, &timer, 0);
    printf("own SIGPROF %s\n", counts[SIGPROF] >= 1 ? "arrives" : "lost");

    /* everything blocked, a thread that waits for any signal */
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    pthread_t t;
    pthread_create(&t, 0, waiter, 0);
    burn(50);
    pthread_kill(t, SIGUSR1);
    void *r;
    pthread_join(t, &r);
    printf("waited for %ld\n", (long)r);

    /* a signalfd with every signal sees none but the program's */
    int fd = signalfd(-1, &all, SFD_NONBLOCK);
    burn(50);
    struct signalfd_siginfo info;
    long n = read(fd, &info, sizeof info);
    printf("signalfd %ld\n", n);
    struct timespec none = {0};
    printf("pending %d\n", sigtimedwait(&all, 0, &none) == -1 && errno == EAGAIN);
    pthread_sigmask(SIG_SETMASK, &old, 0);

    /* system calls that are never restarted */
    int eintr = 0;
    for (int i = 0; i < 200; i++) {
        struct timespec nap = {0, 200000};
        burn(1);
        eintr += nanosleep(&nap, 0) != 0;
        eintr += poll(0, 0, 1) != 0;
    }
    printf("interrupted %s\n", eintr == 0 ? "never" : "sometimes");

    errno = 77;
    burn(50);
    /* errno survives samples between two looks at it (burn makes no failing call) */
    printf("errno %d\n", errno);
    return 0;
}
