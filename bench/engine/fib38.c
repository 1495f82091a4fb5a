/* fib(38) by recursion: nothing but calls and returns. */
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
int main(void) {
    volatile long n = 38;
    printf("%ld\n", fib(n));
    return 0;
}
