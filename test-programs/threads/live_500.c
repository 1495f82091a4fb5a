/* 500 threads alive at once, each with its own TLS, meeting at a barrier twice.
 * Answer: the sum of their numbers, and no two at the same TLS address. */
//@ flags: -pthread
//@ stdout: sum 124750, distinct 500
//@ repeat: 2
#include "../check.h"
#include <pthread.h>

#define N 500
static pthread_barrier_t barrier;
static __thread long mine;
static long *where[N], total;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *work(void *a) {
    mine = (long)a;
    where[mine] = &mine;
    pthread_barrier_wait(&barrier);
    CHECK(mine == (long)a);
    pthread_mutex_lock(&lock);
    total += mine;
    pthread_mutex_unlock(&lock);
    pthread_barrier_wait(&barrier);
    return 0;
}
static int order(const void *a, const void *b) {
    const char *x = *(char *const *)a, *y = *(char *const *)b;
    return x < y ? -1 : x > y;
}
int main(void) {
    pthread_t t[N];
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 64 * 1024);
    pthread_barrier_init(&barrier, 0, N);
    for (long i = 0; i < N; i++) CHECK(pthread_create(&t[i], &attr, work, (void *)i) == 0);
    for (long i = 0; i < N; i++) pthread_join(t[i], 0);
    qsort(where, N, sizeof *where, order);
    int distinct = 1;
    for (int i = 1; i < N; i++) distinct += where[i] != where[i - 1];
    printf("sum %ld, distinct %d\n", total, distinct);
    return 0;
}
