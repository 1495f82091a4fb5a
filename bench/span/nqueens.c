// Counts the ways to place n queens: every row's choices are tasks until few rows are left.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"
#ifndef LEAF
#define LEAF 7
#endif

static long serial(int n, unsigned cols, unsigned left, unsigned right) {
    unsigned all = (1u << n) - 1, free = all & ~(cols | left | right);
    if (cols == all) return 1;
    long count = 0;
    while (free) {
        unsigned bit = free & -free;
        free ^= bit;
        count += serial(n, cols | bit, (left | bit) << 1, (right | bit) >> 1);
    }
    return count;
}

static unsigned mirrored(int n, unsigned row) {
    unsigned other = 0;
    for (int i = 0; i < n; i++) other |= (row >> i & 1) << (n - 1 - i);
    return other;
}

// All that is below a piece, as one call. Every other time the board is seen in a mirror: the same search a second time would
// take less, because the processor remembers its branches.
static long leaf(int n, unsigned cols, unsigned left, unsigned right) {
    long count = 0;
    AGAIN {
        __asm__ volatile("" : "+r"(cols)); /* or it would be counted once */
        count = serial(n, cols, left, right);
        unsigned other = mirrored(n, right);
        cols = mirrored(n, cols), right = mirrored(n, left), left = other;
    }
    return count;
}

static long queens(int n, int rows, unsigned cols, unsigned left, unsigned right) {
    if (rows <= LEAF) return leaf(n, cols, left, right);
    unsigned all = (1u << n) - 1, free = all & ~(cols | left | right);
    long counts[32];
    int tasks = 0;
    while (free) {
        unsigned bit = free & -free;
        free ^= bit;
        counts[tasks] = cilk_spawn queens(n, rows - 1, cols | bit, (left | bit) << 1, (right | bit) >> 1);
        tasks++;
    }
    cilk_sync;
    long sum = 0;
    for (int i = 0; i < tasks; i++) sum += counts[i];
    return sum;
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 12;
    printf("%ld\n", queens(n, n, 0, 0, 0));
    return 0;
}
