// OpenMP: a serial part, a balanced region, and a region with tasks.
#include "idle.h"

__attribute__((noinline)) uint64_t alone(double seconds) { return burn(seconds) + 1; }

__attribute__((noinline)) uint64_t region(void) {
    uint64_t sum = 0;
#pragma omp parallel num_threads(2) reduction(+ : sum)
    sum += burn(0.1);
    return sum;
}

__attribute__((noinline)) uint64_t tasks(void) {
    uint64_t sum = 0;
#pragma omp parallel num_threads(2)
#pragma omp single
    for (int i = 0; i < 20; i++) {
#pragma omp task shared(sum) firstprivate(i)
        {
            uint64_t x = burn(0.01) + i;
#pragma omp atomic
            sum += x;
        }
    }
    return sum;
}

int main(void) {
    uint64_t x = 0;
    for (int round = 0; round < 2; round++) {
        x += alone(0.2);
        x += region();
        x += tasks();
    }
    printf("%d\n", x != 0);
}
