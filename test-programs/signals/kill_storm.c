/* pthread_kill from all threads to all threads, in system calls, locks and computation.
 * Answer: every signal of a queueing kind arrives: 4 threads x 2000. */
//@ flags: -pthread
//@ stdout: received 8000
//@ repeat: 3
#include "../check.h"
#include <pthread.h>
#include <signal.h>

static pthread_t t[4];
static int received;
static pthread_barrier_t start, end;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void on_rt(int s) {
    (void)s;
    __atomic_add_fetch(&received, 1, __ATOMIC_SEQ_CST);
}
static void *work(void *a) {
    pthread_barrier_wait(&start);
    for (int i = 0; i < 2000; i++) {
        while (pthread_kill(t[((long)a + i) % 4], SIGRTMIN) == EAGAIN) usleep(10);
        pthread_mutex_lock(&lock);
        char *p = malloc(100 + i);
        p[i % 100] = 1;
        free(p);
        pthread_mutex_unlock(&lock);
        if (i % 100 == 0) usleep(1);
    }
    pthread_barrier_wait(&end);
    return 0;
}
int main(void) {
    struct sigaction sa = {.sa_handler = on_rt, .sa_flags = SA_RESTART};
    sigaction(SIGRTMIN, &sa, 0);
    pthread_barrier_init(&start, 0, 4);
    pthread_barrier_init(&end, 0, 5);
    for (long i = 0; i < 4; i++) CHECK(pthread_create(&t[i], 0, work, (void *)i) == 0);
    pthread_barrier_wait(&end);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("received %d\n", received);
    return 0;
}
