// What sampling costs: two threads, each N times a recursion of 20 calls that ends in a short loop; every stack is 22
// frames deep. Prints the CPU time of the process. Build with frame pointers, so that perf can walk the same stacks.
// Argument: N.
#include "idle.h"
#include <pthread.h>

__attribute__((noinline)) uint64_t leaf(uint64_t x) {
    for (int i = 0; i < 2000; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}

__attribute__((noinline)) uint64_t down(int depth, uint64_t x) {
    if (depth == 0) return leaf(x);
    x = down(depth - 1, x + 1);
    return x + 1;
}

static long count;

static void *run(void *unused) {
    uint64_t x = 1;
    for (long i = 0; i < count; i++) x = down(20, x);
    return (void *)(x | 1);
}

int main(int argc, char **argv) {
    count = ARGUMENT(1, 300000);
    pthread_t t;
    void *other;
    pthread_create(&t, 0, run, 0);
    void *own = run(0);
    pthread_join(t, &other);
    printf("%.6f\n", own && other ? clock_of(CLOCK_PROCESS_CPUTIME_ID) : 0);
}
