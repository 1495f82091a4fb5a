/* One of several threads takes the gs register for itself, as Wine does, while the others compute, sleep and take
 * signals; all must go on (an engine that needs gs has to leave all of them).
 * Answer: what each of them computes. */
//@ flags: -pthread
//@ repeat: 5
//@ stdout: gs 4242, sums 3, slept 1, signals 1
#define _GNU_SOURCE
#include "../check.h"
#include <asm/prctl.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>

static volatile int go_on = 1, signals, slept;
static long base[512];
static void on_usr1(int s) {
    (void)s;
    signals++;
}
static long compute(void) {
    long sum = 0;
    for (volatile long i = 0; i < 3000000; i++) sum += i % 7 * (i % 3);
    return sum;
}
static void *computes(void *arg) {
    (void)arg;
    long first = compute(), sum = first;
    while (go_on) sum = compute() == first ? first : -1;
    return (void *)(long)(sum == first);
}
static void *sleeps(void *arg) {
    (void)arg;
    struct timespec t = {0, 50000000};
    while (go_on) {
        int r;
        do r = nanosleep(&t, &t);
        while (r != 0 && errno == EINTR);
        t = (struct timespec){0, 50000000};
        slept = 1;
    }
    return 0;
}
int main(void) {
    signal(SIGUSR1, on_usr1);
    pthread_t t[4];
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&t[i], 0, computes, 0) == 0);
    CHECK(pthread_create(&t[3], 0, sleeps, 0) == 0);
    for (int i = 0; i < 20; i++) pthread_kill(t[i % 4], SIGUSR1), usleep(1000);
    base[3] = 4242;
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, base) == 0);
    long seen;
    __asm__ volatile("mov %%gs:24, %0" : "=r"(seen));
    for (int i = 0; i < 20; i++) pthread_kill(t[i % 4], SIGUSR1), usleep(1000);
    usleep(60000);
    go_on = 0;
    long sums = 0;
    for (int i = 0; i < 4; i++) {
        void *r;
        CHECK(pthread_join(t[i], &r) == 0);
        sums += (long)r;
    }
    printf("gs %ld, sums %ld, slept %d, signals %d\n", seen, sums, slept, signals > 0);
    return 0;
}
