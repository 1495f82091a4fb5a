/* Many threads alive at once: each reads what the main thread wrote for it. */
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 300 };
static int data[THREADS][8];
static pthread_barrier_t all_here;

__attribute__((noinline, noclone)) static int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}
static void *worker(void *number) {
    int i = (int)(long)number;
    pthread_barrier_wait(&all_here);
    return (void *)(long)sum(data[i], i % 5 + 1);
}

int main(void) {
    static pthread_t threads[THREADS];
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 65536);
    pthread_barrier_init(&all_here, 0, THREADS);
    for (int i = 0; i < THREADS; i++) {
        for (int k = 0; k < 8; k++) data[i][k] = i + k;
        if (pthread_create(&threads[i], &small, worker, (void *)(long)i)) return 1;
    }
    long total = 0;
    for (int i = 0; i < THREADS; i++) {
        void *result;
        pthread_join(threads[i], &result);
        total += (long)result;
    }
    printf("%ld\n", total);
    return 0;
}
