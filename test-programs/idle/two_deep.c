// What sampling costs: T threads, each N times a recursion of 20 calls that ends in a short loop; every stack is 22
// frames deep. Build with frame pointers, so that perf can walk the same stacks.
//
// Prints the CPU time of the process, and how much of the threads' time was taken from the recursions: each is timed,
// and what it took beyond the usual was an interruption. That is far more exact than two runs' CPU times, which differ
// by the processor's mood. Interruptions of more than 300 us are other programs, and there are none of these when the
// threads may run at real-time priority, each on a processor of its own.
// Arguments: N, T.
#define _GNU_SOURCE
#include "idle.h"
#include <pthread.h>
#include <sched.h>
#include <x86intrin.h>

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
static double ticks_per_second;

typedef struct {
    int number;
    uint64_t result;
    double lost, all;
    uint32_t *took;
} worker;

static int less(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static void *run(void *data) {
    worker *w = data;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(w->number, &one);
    struct sched_param high = {.sched_priority = 10};
    if (sched_setscheduler(0, SCHED_FIFO, &high) == 0) sched_setaffinity(0, sizeof one, &one);
    uint64_t x = 1, before = __rdtsc();
    for (long i = 0; i < count; i++) {
        x = down(20, x);
        uint64_t after = __rdtsc();
        w->took[i] = after - before > UINT32_MAX ? UINT32_MAX : after - before;
        before = after;
    }
    w->result = x;
    return 0;
}

static void judge(worker *w) {
    double limit = 300e-6 * ticks_per_second;
    uint32_t *sorted = malloc(count * sizeof *sorted);
    for (long i = 0; i < count; i++) sorted[i] = w->took[i];
    qsort(sorted, count, sizeof *sorted, less);
    double usual = sorted[count / 2];
    for (long i = 0; i < count; i++) {
        if (w->took[i] >= limit) continue;
        w->all += w->took[i] / ticks_per_second;
        if (w->took[i] > 1.25 * usual) w->lost += (w->took[i] - usual) / ticks_per_second;
    }
}

int main(int argc, char **argv) {
    count = ARGUMENT(1, 300000);
    int threads = ARGUMENT(2, 2);
    worker workers[64] = {0};
    pthread_t t[64];
    double wall = clock_of(CLOCK_MONOTONIC);
    uint64_t tsc = __rdtsc();
    for (int i = threads - 1; i >= 0; i--) {
        workers[i].number = i;
        workers[i].took = malloc(count * sizeof(uint32_t));
        for (long k = 0; k < count; k++) workers[i].took[k] = 1;
        pthread_create(&t[i], 0, run, &workers[i]);
    }
    uint64_t x = 0;
    double lost = 0, all = 0;
    for (int i = 0; i < threads; i++) {
        pthread_join(t[i], 0);
        x += workers[i].result;
    }
    double cpu = clock_of(CLOCK_PROCESS_CPUTIME_ID);
    ticks_per_second = (__rdtsc() - tsc) / (clock_of(CLOCK_MONOTONIC) - wall);
    for (int i = 0; i < threads; i++) judge(&workers[i]), lost += workers[i].lost, all += workers[i].all;
    printf("%.6f %.6f %.6f\n", x ? cpu : 0, lost, all);
}
