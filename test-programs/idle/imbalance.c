// Two threads of a region work for different planned times: the longer part answers for the difference.
// Arguments: rounds, CPU seconds of the first thread and of the second per round.
#include "idle.h"

__attribute__((noinline)) uint64_t longer(double seconds) { return burn(seconds) + 1; }
__attribute__((noinline)) uint64_t shorter(double seconds) { return burn(seconds) + 2; }

int main(int argc, char **argv) {
    int rounds = ARGUMENT(1, 8);
    double first = ARGUMENT(2, 0.1), second = ARGUMENT(3, 0.05);
    uint64_t x = 0;
    for (int round = 0; round < rounds; round++) {
#pragma omp parallel for schedule(static, 1) num_threads(2) reduction(+ : x)
        for (int i = 0; i < 2; i++) x += i == 0 ? longer(first) : shorter(second);
    }
    printf("%d\n", (int)(x != 0));
}
