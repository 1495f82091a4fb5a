// Rounds of unequal tasks, each round waited for: the longest of three decides, until another one takes over.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"

static unsigned long sink;

__attribute__((noinline)) static void spin(long n) {
    unsigned long x = 1;
    for (long i = 0; i < n; i++) {
        x = x * 6364136223846793005UL + 1;
        __asm__ volatile("" : "+r"(x));
    }
    sink += x;
}

__attribute__((noinline)) static void longest(long n) {
    AGAIN spin(n);
}

int main(int argc, char **argv) {
    int rounds = argc > 1 ? atoi(argv[1]) : 200;
    long n = argc > 2 ? atol(argv[2]) : 200000;
    for (int i = 0; i < rounds; i++) {
        cilk_spawn spin(n);
        cilk_spawn longest(2 * n);
        spin(3 * n);
        cilk_sync;
    }
    printf("%d\n", sink != 0);
    return 0;
}
