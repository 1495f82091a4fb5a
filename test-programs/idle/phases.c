// One thread works alone, then two work together, several times over. CPU time is what is planned, so that other load on
// the machine changes nothing.
#include "idle.h"
#include <pthread.h>

__attribute__((noinline)) uint64_t alone(double seconds) { return burn(seconds) + 1; }
__attribute__((noinline)) uint64_t together(double seconds) { return burn(seconds) + 2; }

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
}
