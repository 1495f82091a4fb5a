// Every form of Cilk, with costs that the program reports itself: work and span are known exactly.
#include <cilk/cilk.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C"
#endif
void farsight_spend(unsigned long units);

static int g(int units) {
    farsight_spend((unsigned long)units);
    return units;
}

static void procedure(void) { farsight_spend(5); }

// work 60, span 40: the task of 30 starts after 10 and ends at 40, the continuation at 30.
static int declared(void) {
    g(10);
    int x = cilk_spawn g(30);
    g(20);
    cilk_sync;
    return x;
}

// Waits at its return: work 12, span 7 (5 + 2 before the spawn).
static void implicit(int q) {
    g(2);
    if (q >= 0) cilk_spawn procedure();
    if (q < 0) cilk_spawn procedure();
    else g(5);
}

// Iterations of 1 to 10: work 55, span 10.
static int loop(void) {
    int sum = 0;
    cilk_for (int i = 1; i <= 10; i++) {
        if (i == 3) { sum += g(3); continue; }
        sum += g(i);
    }
    return sum;
}

// A called function that spawns does not wait for its caller's children: work 100 + 60 + 1, span 101.
static void nested(void) {
    int a = 0;
    a = cilk_spawn g(100);
    declared();
    cilk_sync;
    g(1);
    (void)a;
}

// A scope waits for its own: work 9 + 8 + 1, span 9 + 1.
static void scoped(void) {
    cilk_scope {
        cilk_spawn g(9);
        g(8);
    }
    g(1);
}

int main(void) {
    int n = declared();
    implicit(1);
    n += loop();
    nested();
    scoped();
    printf("%d\n", n);
    return 0;
}
