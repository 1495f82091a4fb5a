// One thread works alone, then two work together, several times over. CPU time is what is planned, so that other load on
// the machine changes little. With a third argument, prints the CPU seconds that each of the two took: on a machine that
// stands still now and then, they may be more than planned.
#include "idle.h"
#include <pthread.h>

static _Atomic uint64_t alone_ns, together_ns;

__attribute__((noinline)) uint64_t alone(double seconds) {
    double start = now();
    uint64_t x = burn(seconds) + 1;
    alone_ns += (uint64_t)((now() - start) * 1e9);
    return x;
}

__attribute__((noinline)) uint64_t together(double seconds) {
    double start = now();
    uint64_t x = burn(seconds) + 2;
    together_ns += (uint64_t)((now() - start) * 1e9);
    return x;
}

static pthread_barrier_t barrier;

static void *helper(void *seconds) {
    pthread_barrier_wait(&barrier);
    return (void *)together(*(double *)seconds);
}

int main(int argc, char **argv) {
    double serial = ARGUMENT(1, 0.1), parallel = ARGUMENT(2, 0.1);
    uint64_t x = 0;
    for (int round = 0; round < 4; round++) {
        x += alone(serial);
        pthread_t t;
        void *result;
        pthread_barrier_init(&barrier, 0, 2);
        pthread_create(&t, 0, helper, &parallel);
        pthread_barrier_wait(&barrier);
        x += together(parallel);
        pthread_join(t, &result);
        x += (uint64_t)result;
    }
    printf("%d\n", (int)(x != 0));
    if (argc > 3) printf("%f %f\n", alone_ns * 1e-9, together_ns * 1e-9);
}
