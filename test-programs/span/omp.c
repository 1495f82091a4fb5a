// OpenMP: tasks, a loop, sections, barriers, a critical section. Each part alone with an argument.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile double sink;

// About a microsecond per 1000.
__attribute__((noinline)) static double spin(long n) {
    double x = 1;
    for (long i = 0; i < n; i++) {
        x = x * 1.0000001 + 1e-9;
        __asm__ volatile("" : "+x"(x));
    }
    return x;
}

static int fib(int n) {
    int x, y;
    if (n < 2) return n;
    if (n < 10) return fib(n - 1) + fib(n - 2);
#pragma omp task shared(x)
    x = fib(n - 1);
#pragma omp task shared(y)
    y = fib(n - 2);
#pragma omp taskwait
    return x + y;
}

// What the strand costs, when costs are what the program says.
__attribute__((weak)) void farsight_spend(unsigned long units);

static void cost(unsigned long units) {
    if (farsight_spend) farsight_spend(units);
}

int main(int argc, char **argv) {
    const char *part = argc > 1 ? argv[1] : "all";
    int all = !strcmp(part, "all");
    if (all || !strcmp(part, "tasks")) {
        int r = 0;
#pragma omp parallel
#pragma omp single
        r = fib(22);
        printf("%d\n", r);
    }
    if (all || !strcmp(part, "loop")) {
        double sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 0; i < 64; i++) sum += spin(100000);
        sink = sum;
    }
    if (all || !strcmp(part, "unwaited")) {
#pragma omp parallel
#pragma omp single
        for (int i = 0; i < 32; i++) {
#pragma omp task
            sink = spin(200000);
        }
    }
    if (all || !strcmp(part, "phases")) {
#pragma omp parallel
        for (int k = 0; k < 4; k++) {
#pragma omp single
            sink = spin(400000);
#pragma omp for schedule(dynamic, 1)
            for (int i = 0; i < 16; i++) sink = spin(100000);
#pragma omp critical
            sink = spin(1000);
        }
    }
    if (all || !strcmp(part, "depend")) {
        // One after the other: 1600. Those that read are not ordered, and one that writes waits for them.
        int a = 0, b = 0;
        (void)a, (void)b;
#pragma omp parallel
#pragma omp single
        {
            for (int i = 0; i < 16; i++) {
#pragma omp task depend(inout : a)
                cost(100);
#pragma omp task depend(in : b)
                cost(100);
            }
#pragma omp task depend(out : b)
            cost(50);
        }
    }
    if (all || !strcmp(part, "groups")) {
        // The group waits for its own task; what was created before goes on beside it.
#pragma omp parallel
#pragma omp single
        {
#pragma omp task
            cost(1000);
#pragma omp taskgroup
            {
#pragma omp task
                cost(10);
            }
            cost(5);
#pragma omp taskwait
            cost(1);
        }
    }
    puts("done");
    return 0;
}
