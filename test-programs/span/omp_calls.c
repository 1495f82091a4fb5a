/* OpenMP: calls that fork.
 *
 * `solve` creates tasks and waits for them, twice, with a strand between: five strands, three of them one after the
 * other. `region` has a parallel region of its own. `tree` is recursive. `scatter` creates tasks that its caller waits
 * for: it is no invocation with a span. Costs are steps of a loop. */
#include "spin.h"
#include <stdio.h>
#include <stdlib.h>

static unsigned long sum;

static void add(unsigned long x) {
#pragma omp atomic
    sum ^= x;
}

__attribute__((noinline)) static void solve(unsigned long steps) {
#pragma omp task
    add(spin(steps));
#pragma omp task
    add(spin(steps));
#pragma omp taskwait
    add(spin(steps));
#pragma omp task
    add(spin(steps));
#pragma omp task
    add(spin(steps));
#pragma omp taskwait
    add(1);
}

__attribute__((noinline)) static void tree(int depth, unsigned long steps) {
    if (depth == 0) {
        add(spin(steps));
        return;
    }
#pragma omp task
    tree(depth - 1, steps);
#pragma omp task
    tree(depth - 1, steps);
#pragma omp taskwait
    add(2);
}

__attribute__((noinline)) static void scatter(unsigned long steps) {
#pragma omp task
    add(spin(steps));
#pragma omp task
    add(spin(steps));
    add(3);
}

__attribute__((noinline)) static void region(unsigned long steps) {
#pragma omp parallel for
    for (int i = 0; i < 4; i++) add(spin(steps));
    add(4);
}

int main(int argc, char **argv) {
    unsigned long steps = strtoul(argv[argc - 1], 0, 10);
    /* The runtime starts here. */
#pragma omp parallel
    add(5);
    region(steps);
#pragma omp parallel
#pragma omp single
    {
#pragma omp task
        {
            solve(steps);
            add(spin(steps));
            solve(2 * steps);
        }
#pragma omp task
        tree(4, steps);
#pragma omp task
        {
            scatter(steps);
            add(spin(steps));
#pragma omp taskwait
        }
    }
    printf("%d\n", sum != 42);
}
