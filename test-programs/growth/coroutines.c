/* Two coroutines on stacks of their own take turns with the main one: sizes are those of what each reads. */
#include <stdio.h>
#include <ucontext.h>

#define ROUTINE __attribute__((noinline, noclone)) static

static ucontext_t home, sides[2];
static int data[64];
static char stacks[2][65536] __attribute__((aligned(16)));
static long total;

ROUTINE int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}
ROUTINE int twice(const int *v, int n) { return 2 * sum(v, n); }

static void side(int which) {
    for (int round = 1; round <= 10; round++) {
        total += twice(data, 3 * round + which);
        swapcontext(&sides[which], &home);
    }
}

int main(void) {
    for (int i = 0; i < 64; i++) data[i] = i;
    for (int which = 0; which < 2; which++) {
        getcontext(&sides[which]);
        sides[which].uc_stack.ss_sp = stacks[which];
        sides[which].uc_stack.ss_size = sizeof stacks[which];
        sides[which].uc_link = &home;
        makecontext(&sides[which], (void (*)(void))side, 1, which);
    }
    for (int round = 1; round <= 10; round++) {
        for (int which = 0; which < 2; which++) swapcontext(&home, &sides[which]);
        total += twice(data, 40 + round);
    }
    printf("%ld\n", total);
    return 0;
}
