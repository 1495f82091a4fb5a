/* OpenMP tasks and a loop whose strands are two functions, one of which does three times as much as the other. */
#include "spin.h"
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static unsigned long longer(unsigned long steps) { return spin(3 * steps) ^ 1; }
__attribute__((noinline)) static unsigned long shorter(unsigned long steps) { return spin(steps) ^ 2; }

static unsigned long sum;

static void tree(int depth, unsigned long steps) {
    if (depth == 0) {
        unsigned long x = longer(steps) ^ shorter(steps);
#pragma omp atomic
        sum ^= x;
        return;
    }
#pragma omp task
    tree(depth - 1, steps);
    tree(depth - 1, steps);
#pragma omp taskwait
}

int main(int argc, char **argv) {
    unsigned long steps = strtoul(argv[argc - 1], 0, 10), total = 0;
#pragma omp parallel
#pragma omp single
    tree(5, steps);
#pragma omp parallel for reduction(+ : total)
    for (int i = 0; i < 32; i++) total += longer(steps) + shorter(steps);
    printf("%d\n", (sum ^ total) != 42);
}
