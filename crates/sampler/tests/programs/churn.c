/* Threads of all kinds, forks and execs, while samples are taken. Prints its result. */
#define _GNU_SOURCE
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <threads.h>
#include <unistd.h>

extern char **environ;
static unsigned long spin(int n) {
    volatile unsigned long x = n;
    for (int i = 0; i < n; i++)
        x = x * 3 + 1;
    return x;
}
static void *returns(void *a) { return (void *)spin(20000); }
static void *exits(void *a) {
    spin(20000);
    pthread_exit((void *)7);
}
static void *cancelled(void *a) {
    for (;;)
        usleep(1000);
}
static int c11(void *a) { return (int)(spin(20000) & 0) + 11; }

int main(int argc, char **argv) {
    if (argc > 1)
        return getenv("LD_PRELOAD") ? 99 : 42; /* executed again: must not be profiled */
    unsigned long sum = 0;
    for (int round = 0; round < 50; round++) {
        pthread_t t[3];
        thrd_t c;
        void *r;
        int code;
        pthread_create(&t[0], 0, returns, 0);
        pthread_create(&t[1], 0, exits, 0);
        pthread_create(&t[2], 0, cancelled, 0);
        thrd_create(&c, c11, 0);
        pthread_join(t[0], &r);
        pthread_join(t[1], &r);
        sum += (unsigned long)r;
        pthread_cancel(t[2]);
        pthread_join(t[2], &r);
        sum += r == PTHREAD_CANCELED;
        thrd_join(c, &code);
        sum += code;
        if (round % 10 == 0) {
            pid_t pid = fork();
            if (pid == 0) {
                pthread_create(&t[0], 0, returns, 0);
                pthread_join(t[0], &r);
                _exit(5);
            }
            int status;
            waitpid(pid, &status, 0);
            sum += WEXITSTATUS(status);
            pid = vfork();
            if (pid == 0) {
                execl("/proc/self/exe", "churn", "again", (char *)0);
                _exit(1);
            }
            waitpid(pid, &status, 0);
            sum += WEXITSTATUS(status);
            char *args[] = {"churn", "again", 0};
            posix_spawn(&pid, "/proc/self/exe", 0, 0, args, environ);
            waitpid(pid, &status, 0);
            sum += WEXITSTATUS(status);
        }
    }
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_t t;
    void *r;
    pthread_create(&t, &small, returns, 0);
    pthread_join(t, &r);
    printf("%lu\n", sum);
}
