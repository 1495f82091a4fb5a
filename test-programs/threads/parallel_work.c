/* 8 threads on atomics, mutexes, condition variables and malloc: the classic mix.
 * Answer: the counters below, each counted twice. */
//@ flags: -pthread
//@ stdout: atomic 800000, locked 800000, items 40000 sum 799980000
//@ repeat: 10
#include "../check.h"
#include <pthread.h>
#include <stdatomic.h>

#define N 8
static atomic_long counter;
static long locked, items, sum;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, qlock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t full = PTHREAD_COND_INITIALIZER, room = PTHREAD_COND_INITIALIZER;
static struct item {
    struct item *next;
    long v;
} *head;
static int queued, done;

static void *work(void *a) {
    for (int i = 0; i < 100000; i++) {
        atomic_fetch_add(&counter, 1);
        pthread_mutex_lock(&lock);
        locked++;
        pthread_mutex_unlock(&lock);
    }
    return a;
}
static void *produce(void *a) {
    for (long i = 0; i < 40000; i++) {
        struct item *it = malloc(sizeof *it);
        it->v = i;
        pthread_mutex_lock(&qlock);
        while (queued == 16) pthread_cond_wait(&room, &qlock);
        it->next = head, head = it, queued++;
        pthread_cond_signal(&full);
        pthread_mutex_unlock(&qlock);
    }
    pthread_mutex_lock(&qlock);
    done = 1;
    pthread_cond_broadcast(&full);
    pthread_mutex_unlock(&qlock);
    return a;
}
static void *consume(void *a) {
    for (;;) {
        pthread_mutex_lock(&qlock);
        while (!head && !done) pthread_cond_wait(&full, &qlock);
        struct item *it = head;
        if (it) head = it->next, queued--, items++, sum += it->v;
        pthread_cond_signal(&room);
        pthread_mutex_unlock(&qlock);
        if (!it) return a;
        free(it);
    }
}
int main(void) {
    pthread_t t[N + 3];
    for (int i = 0; i < N; i++) CHECK(pthread_create(&t[i], 0, work, 0) == 0);
    CHECK(pthread_create(&t[N], 0, produce, 0) == 0);
    CHECK(pthread_create(&t[N + 1], 0, consume, 0) == 0);
    CHECK(pthread_create(&t[N + 2], 0, consume, 0) == 0);
    for (int i = 0; i < N + 3; i++) pthread_join(t[i], 0);
    printf("atomic %ld, locked %ld, items %ld sum %ld\n", (long)counter, locked, items, sum);
    return 0;
}
