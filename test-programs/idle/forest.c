// As many calling contexts as can be: threads that walk at random through sixteen functions, so that hardly two samples
// have the same path. Prints the time of day when it ends. Arguments: threads, CPU seconds of each, depth of the walks.
#include "idle.h"
#include <pthread.h>

static double seconds;
static int depth;
typedef uint64_t walk(uint64_t x, int depth);
static walk *const functions[16];

static inline __attribute__((always_inline)) uint64_t step(uint64_t x, int depth, int salt) {
    x = x * 6364136223846793005ull + 2 * salt + 1;
    for (int i = 0; i < (int)(x >> 60) * 8; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
    if (depth > 0) x = functions[x >> 60](x, depth - 1) + 1;
    if (depth > 0 && (x >> 40 & 1)) x = functions[x >> 60](x, depth - 1) + 2;
    return x;
}

#define WALK(n) \
    __attribute__((noinline)) uint64_t walk_##n(uint64_t x, int depth) { return step(x, depth, n); }
WALK(0) WALK(1) WALK(2) WALK(3) WALK(4) WALK(5) WALK(6) WALK(7)
WALK(8) WALK(9) WALK(10) WALK(11) WALK(12) WALK(13) WALK(14) WALK(15)
static walk *const functions[16] = {walk_0, walk_1, walk_2,  walk_3,  walk_4,  walk_5,  walk_6,  walk_7,
                                    walk_8, walk_9, walk_10, walk_11, walk_12, walk_13, walk_14, walk_15};

static void *run(void *seed) {
    uint64_t x = (uint64_t)seed;
    for (double end = now() + seconds; now() < end;) x = functions[x & 15](x, depth);
    return (void *)x;
}

int main(int argc, char **argv) {
    int threads = ARGUMENT(1, 8);
    seconds = ARGUMENT(2, 1);
    depth = ARGUMENT(3, 12);
    pthread_t t[64];
    uint64_t x = 0;
    for (int i = 0; i < threads && i < 64; i++) pthread_create(&t[i], 0, run, (void *)(uint64_t)(i * 77 + 1));
    for (int i = 0; i < threads && i < 64; i++) {
        void *result;
        pthread_join(t[i], &result);
        x += (uint64_t)result;
    }
    printf("%.6f\n", x ? clock_of(CLOCK_REALTIME) : 0);
}
