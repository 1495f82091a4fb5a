// Figure 5 of the Cilkprof paper, without a word: what it executes beside fib is the same for every n. The number is a letter.
#include <cilk/cilk.h>

int fib(int n) {
    if (n < 2) return n;
    int x, y;
    x = cilk_spawn fib(n-1);
    y = fib(n-2);
    cilk_sync;
    return (x + y);
}

int main(int argc, char *argv[]) { return argc > 1 && fib(argv[1][0] - 'a') < 0; }
