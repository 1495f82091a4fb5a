/* longjmp over many frames, 100,000 times: returns that never happen must not pile up anywhere.
 * Answer: below. */
//@ flags: -Wno-infinite-recursion
//@ stdout: jumps 100000, sum 4999950000
#include "../check.h"
#include <setjmp.h>

static jmp_buf out;
static volatile long sum;
__attribute__((noinline)) static void deep(int n, int value) {
    if (n == 0) {
        sum += value;
        longjmp(out, value + 1);
    }
    deep(n - 1, value);
    __asm__ volatile("" ::: "memory");
}
int main(void) {
    volatile int jumps = 0;
    int got = setjmp(out);
    if (got) jumps++;
    if (jumps < 100000) deep(17, jumps);
    printf("jumps %d, sum %ld\n", jumps, sum);
    return got != 100000;
}
