// Two thousand threads at once, each of which works a little. Argument: how many.
#include "idle.h"
#include <pthread.h>

static pthread_barrier_t barrier;

static void *work(void *unused) {
    uint64_t x = burn(0.0003);
    pthread_barrier_wait(&barrier);
    return (void *)(x | 1);
}

int main(int argc, char **argv) {
    int count = ARGUMENT(1, 2000), done = 0;
    pthread_t *threads = calloc(count, sizeof *threads);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_barrier_init(&barrier, 0, count);
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], &attributes, work, 0)) return 1;
    for (int i = 0; i < count; i++) {
        void *result;
        pthread_join(threads[i], &result);
        done += result != 0;
    }
    printf("%d\n", done);
}
