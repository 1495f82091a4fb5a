/* Coroutines by makecontext/swapcontext: 100,000 switches among 10 stacks of 16 KB.
 * Answer: the sum of what they yield. */
//@ stdout: switches 100000, sum 450000
#include "../check.h"
#include <ucontext.h>

static ucontext_t main_context, co[10];
static int yielded;
static void body(int me) {
    for (;;) {
        char room[2000];
        memset(room, me, sizeof room);
        __asm__ volatile("" ::"r"(room) : "memory");
        yielded = room[1999];
        swapcontext(&co[me], &main_context);
    }
}
int main(void) {
    for (int i = 0; i < 10; i++) {
        getcontext(&co[i]);
        co[i].uc_stack.ss_sp = malloc(16384);
        co[i].uc_stack.ss_size = 16384;
        makecontext(&co[i], (void (*)(void))body, 1, i);
    }
    long sum = 0, switches = 0;
    for (int i = 0; i < 100000; i++, switches++) {
        swapcontext(&main_context, &co[i % 10]);
        sum += yielded;
    }
    printf("switches %ld, sum %ld\n", switches, sum);
    return 0;
}
