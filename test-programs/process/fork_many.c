/* fork, 200 times in a row, from a process that also runs a busy thread: only the caller lives on in the child.
 * Answer: 200 children, each with its own status. */
//@ flags: -pthread
//@ stdout: 200 children, sum of statuses 6076
//@ repeat: 3
#include "../check.h"
#include <pthread.h>
#include <sys/wait.h>

static volatile int stop;
static volatile unsigned long spins;
static void *spin(void *a) {
    (void)a;
    while (!stop) spins++;
    return 0;
}
int main(void) {
    pthread_t t;
    CHECK(pthread_create(&t, 0, spin, 0) == 0);
    int sum = 0;
    for (int i = 0; i < 200; i++) {
        pid_t c = fork();
        CHECK(c >= 0);
        if (c == 0) {
            char *p = malloc(1000 + i);
            memset(p, i, 1000 + i);
            _exit(p[999] & 63);
        }
        int st;
        CHECK(waitpid(c, &st, 0) == c && WIFEXITED(st));
        sum += WEXITSTATUS(st);
    }
    stop = 1;
    pthread_join(t, 0);
    printf("200 children, sum of statuses %d\n", sum);
    return 0;
}
