// A tree whose nodes combine serially what their children did: the root's combining holds much of the span.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"

static unsigned long sink;

__attribute__((noinline)) static void leaf(long n) {
    unsigned long x = 1;
    for (long i = 0; i < n; i++) {
        x = x * 6364136223846793005UL + 1;
        __asm__ volatile("" : "+r"(x));
    }
    sink += x;
}

__attribute__((noinline)) static void combine(long n) {
    AGAIN leaf(n);
}

static void tree(int depth, long n) {
    if (depth == 0) {
        leaf(n);
        return;
    }
    cilk_spawn tree(depth - 1, n);
    tree(depth - 1, n);
    cilk_sync;
    combine(n * depth / 2);
}

int main(int argc, char **argv) {
    tree(argc > 1 ? atoi(argv[1]) : 9, argc > 2 ? atol(argv[2]) : 100000);
    printf("%d\n", sink != 0);
    return 0;
}
