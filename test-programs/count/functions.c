/* What makes counting by function hard: recursion, mutual recursion, tail calls, calls through pointers, longjmp over
 * several activations, a callback from libc, a handler, a handler left by longjmp.
 * Answer: single-stepping says how often each function was entered and what it executed, alone and in all. */
//@ flags: -O1 -static -fno-inline -foptimize-sibling-calls
//@ stdout: 3875
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static jmp_buf out;
static sigjmp_buf away;
static volatile long sum;

__attribute__((noinline)) static long fib(long n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__attribute__((noinline)) static int odd(int n);
__attribute__((noinline)) static int even(int n) { return n == 0 ? 1 : odd(n - 1); }
static int odd(int n) { return n == 0 ? 0 : even(n - 1); }
__attribute__((noinline)) static long leaf(long n) {
    for (long i = 0; i < n; i++) sum += i;
    return n;
}
__attribute__((noinline)) static long hop(long n) { return leaf(n + 1); }
__attribute__((noinline)) static void deep(int n) {
    if (n == 0 && sum > 0) longjmp(out, 1);
    if (n > 0) deep(n - 1);
    leaf(1);
}
__attribute__((noinline)) static int by_value(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((noinline)) static void handler(int s) { leaf(s); }
__attribute__((noinline)) static void leaver(int s) {
    leaf(s);
    siglongjmp(away, 1);
}
static long (*volatile pointer)(long) = hop;

int main(void) {
    sum += fib(12) + even(10) + odd(7) + pointer(20);
    if (!setjmp(out)) deep(5);
    int list[] = {5, 3, 9, 1, 7, 2};
    qsort(list, 6, sizeof *list, by_value);
    for (int i = 0; i < 6; i++) leaf(list[i]);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 3; i++) raise(SIGUSR1);
    signal(SIGUSR2, leaver);
    for (volatile int i = 0; i < 2; i++)
        if (!sigsetjmp(away, 1)) raise(SIGUSR2);
    leaf(80);
    printf("%ld\n", sum);
    return 0;
}
