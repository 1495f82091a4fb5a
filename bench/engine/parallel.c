/* The same CPU-bound work by 1 or 2 threads (argument): does parallel speed survive? Work without shared data, plus a
 * mutex now and then. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long total;
static int threads;
__attribute__((noinline)) static unsigned long step(unsigned long x) { return (x ^ x >> 29) * 0xbf58476d1ce4e5b9 + 1; }
static void *work(void *a) {
    unsigned long x = (unsigned long)a + 1;
    for (int lap = 0; lap < 800 / threads; lap++) {
        for (int i = 0; i < 250000; i++) x = step(x);
        pthread_mutex_lock(&lock);
        total += 1;
        pthread_mutex_unlock(&lock);
    }
    return (void *)(x & 1);
}
int main(int argc, char **argv) {
    threads = argc > 1 ? atoi(argv[1]) : 1;
    pthread_t t[64];
    for (long i = 0; i < threads; i++) pthread_create(&t[i], 0, work, (void *)i);
    for (long i = 0; i < threads; i++) pthread_join(t[i], 0);
    printf("%lu\n", total);
    return 0;
}
