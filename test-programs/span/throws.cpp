// An exception passes through a task and the function that spawned it, which waits for its other child; costs are reported
// by the program, so work and span are known: 28 and 20.
#include <cilk/cilk.h>
#include <stdio.h>

extern "C" void farsight_spend(unsigned long units);

static int spend(int units) {
    farsight_spend((unsigned long)units);
    return units;
}

static int fails(int units) {
    farsight_spend((unsigned long)units);
    throw units;
}

// Work 1 + 10 + 5, span 1 + 10.
static void outer() {
    spend(1);
    cilk_spawn spend(10);
    cilk_spawn fails(5);
    spend(100);
    cilk_sync;
}

int main() {
    int caught = 0;
    try {
        outer();
    } catch (int units) {
        caught = units;
    }
    spend(2);
    cilk_spawn spend(7);
    spend(3);
    cilk_sync;
    printf("%d\n", caught);
    return 0;
}
