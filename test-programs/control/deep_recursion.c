/* Recursion 100,000 frames deep, in main and in a thread with a big stack, and back up by returns.
 * Answer: the depths. */
//@ flags: -pthread -O1 -fno-optimize-sibling-calls
//@ stdout: 100000 1000000
#include "../check.h"
#include <pthread.h>

__attribute__((noinline)) static long down(long n) {
    if (n == 0) return 0;
    long r = down(n - 1) + 1;
    __asm__ volatile("" : "+r"(r));
    return r;
}
static void *thread(void *a) {
    *(long *)a = down(1000000);
    return 0;
}
int main(void) {
    long a = down(100000), b = 0;
    pthread_attr_t attr;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, 256 << 20);
    pthread_t t;
    CHECK(pthread_create(&t, &attr, thread, &b) == 0);
    pthread_join(t, 0);
    printf("%ld %ld\n", a, b);
    return 0;
}
