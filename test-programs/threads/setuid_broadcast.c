/* setuid in a threaded program: glibc sends a real-time signal (33) to every thread and waits for each.
 * Answer: every thread sees the new effective ids (the program's own, so that any user may run it). */
//@ flags: -pthread
//@ stdout: 8 threads agree, 20 rounds
//@ repeat: 5
#include "../check.h"
#include <pthread.h>

static volatile int stop;
static int agree;
static void *work(void *a) {
    unsigned long n = 0;
    while (!stop) {
        n++;
        if ((long)a % 2) usleep(50);
    }
    CHECK(geteuid() == getuid());
    __atomic_add_fetch(&agree, 1, __ATOMIC_SEQ_CST);
    return 0;
}
int main(void) {
    pthread_t t[8];
    for (long i = 0; i < 8; i++) CHECK(pthread_create(&t[i], 0, work, (void *)i) == 0);
    for (int i = 0; i < 20; i++) CHECK(setuid(getuid()) == 0 && setgid(getgid()) == 0);
    stop = 1;
    for (int i = 0; i < 8; i++) pthread_join(t[i], 0);
    printf("%d threads agree, 20 rounds\n", agree);
    return 0;
}
