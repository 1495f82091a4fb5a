// A thread that spins until there is work, in a function of its own: idle, if one is told. Argument: rounds.
#include "idle.h"
#include <pthread.h>
#include <stdatomic.h>

static atomic_int stage;

__attribute__((noinline)) void spin_for_work(int until) {
    while (atomic_load(&stage) < until) __builtin_ia32_pause();
}

__attribute__((noinline)) uint64_t alone(void) { return burn(0.1) + 1; }
__attribute__((noinline)) uint64_t together(void) { return burn(0.1) + 2; }

static int rounds;

static void *helper(void *unused) {
    uint64_t x = 0;
    for (int i = 0; i < rounds; i++) {
        spin_for_work(2 * i + 1);
        x += together();
        atomic_fetch_add(&stage, 1);
    }
    return (void *)x;
}

int main(int argc, char **argv) {
    rounds = ARGUMENT(1, 4);
    pthread_t t;
    pthread_create(&t, 0, helper, 0);
    uint64_t x = 0;
    for (int i = 0; i < rounds; i++) {
        x += alone();
        atomic_fetch_add(&stage, 1);
        x += together();
        spin_for_work(2 * i + 2);
    }
    pthread_join(t, 0);
    printf("%d\n", x != 0);
}
