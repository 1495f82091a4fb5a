/* pthread_cancel, asynchronous in a loop and deferred in a blocking call, with cleanup handlers run by unwinding.
 * Answer: all cancelled, all cleaned up. */
//@ flags: -pthread
//@ stdout: cancelled 40, cleaned 40
//@ repeat: 5
#include "../check.h"
#include <pthread.h>

static int cleaned, started;
static void cleanup(void *a) {
    (void)a;
    __atomic_add_fetch(&cleaned, 1, __ATOMIC_SEQ_CST);
}
static void *spins(void *a) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, 0);
    pthread_cleanup_push(cleanup, a);
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    for (volatile unsigned long i = 0;; i++) {
    }
    pthread_cleanup_pop(0);
}
static void *blocks(void *a) {
    pthread_cleanup_push(cleanup, a);
    __atomic_add_fetch(&started, 1, __ATOMIC_SEQ_CST);
    char c;
    CHECK(read(*(int *)a, &c, 1) == 1);
    pthread_cleanup_pop(0);
    return 0;
}
int main(void) {
    int p[2], cancelled = 0;
    CHECK(pipe(p) == 0);
    for (int round = 0; round < 10; round++) {
        pthread_t t[4];
        started = 0;
        for (int i = 0; i < 4; i++) CHECK(pthread_create(&t[i], 0, i % 2 ? spins : blocks, &p[0]) == 0);
        while (__atomic_load_n(&started, __ATOMIC_SEQ_CST) != 4) usleep(100);
        for (int i = 0; i < 4; i++) {
            void *r;
            pthread_cancel(t[i]);
            pthread_join(t[i], &r);
            cancelled += r == PTHREAD_CANCELED;
        }
    }
    printf("cancelled %d, cleaned %d\n", cancelled, cleaned);
    return 0;
}
