// Figure 5 of the Cilkprof paper, with its arguments parsed. Lines 9 and 10 are its call sites.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>

int fib(int n) {
    if (n < 2) return n;
    int x, y;
    x = cilk_spawn fib(n-1);
    y = fib(n-2);
    cilk_sync;
    return (x + y);
}

int main(int argc, char *argv[]) {
    int n, result;
    n = argc > 1 ? atoi(argv[1]) : 20;
    result = fib(n);
    printf("%d\n", result);
    return 0;
}
