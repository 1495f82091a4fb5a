// Known graphs of spinning strands: prints the work and span that they have, in nanoseconds of this processor. What is
// to be compared is the call in `main`: before and after it, the program measures what a strand costs.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static long STRAND = 200000;

__attribute__((noinline)) static void spin(long n) {
    unsigned long x = 1;
    for (long i = 0; i < n; i++) {
        x = x * 6364136223846793005UL + 1;
        __asm__ volatile("" : "+r"(x));
    }
}

static double thread_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static int by_size(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// What a strand costs when nothing disturbs it. Not the least of many measurements: now and then a processor runs faster
// for some milliseconds.
static double strand_ns(void) {
    double all[60];
    for (int i = 0; i < 60; i++) {
        double t = thread_ns();
        spin(STRAND);
        all[i] = thread_ns() - t;
    }
    qsort(all, 60, sizeof *all, by_size);
    return all[12];
}

static void tree(int depth) {
    if (depth == 0) {
        spin(STRAND);
        return;
    }
    cilk_spawn tree(depth - 1);
    tree(depth - 1);
    cilk_sync;
}

// Depth n: a chain of n strands with a leaf hanging off each.
static void skewed(int n) {
    if (n == 0) return;
    spin(STRAND);
    cilk_spawn spin(STRAND);
    skewed(n - 1);
    cilk_sync;
}

static void chain(int n) {
    for (int i = 0; i < n; i++) {
        cilk_spawn spin(STRAND);
        cilk_sync;
    }
}

static void loop(int n) {
    cilk_for (int i = 0; i < n; i++) spin(STRAND);
}

// Rounds of unequal tasks, each waited for.
static void pipeline(int n) {
    for (int i = 0; i < n; i++) {
        cilk_spawn spin(STRAND);
        cilk_spawn spin(3 * STRAND);
        spin(2 * STRAND);
        cilk_sync;
    }
}

// A loop of loops: n by 4.
static void nested(int n) {
    cilk_for (int i = 0; i < n; i++) {
        spin(STRAND);
        cilk_for (int j = 0; j < 4; j++) spin(STRAND);
    }
}

int main(int argc, char **argv) {
    const char *shape = argc > 1 ? argv[1] : "tree";
    int n = argc > 2 ? atoi(argv[2]) : 6;
    if (argc > 3) STRAND = atol(argv[3]);
    double one = strand_ns(), after, work, span;
    if (!strcmp(shape, "tree")) { tree(n); work = 1 << n; span = 1; }
    else if (!strcmp(shape, "skewed")) { skewed(n); work = 2 * n; span = n + 1; }
    else if (!strcmp(shape, "chain")) { chain(n); work = span = n; }
    else if (!strcmp(shape, "loop")) { loop(n); work = n; span = 1; }
    else if (!strcmp(shape, "nested")) { nested(n); work = 5 * n; span = 2; }
    else { pipeline(n); work = 6 * n; span = 3 * n; }
    after = strand_ns();
    if (after < one) one = after;
    printf("%.0f %.0f\n", work * one, span * one);
    return 0;
}
