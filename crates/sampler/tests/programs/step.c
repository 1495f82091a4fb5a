/* Frames of many shapes: leaf, recursive, many arguments, variable and aligned frames, callbacks from libc,
   lazily bound calls, the vdso. The library checks every instruction in between. */
#include "step.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int compare(const void *a, const void *b) { return *(int *)a - *(int *)b; }

__attribute__((noinline)) int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }

__attribute__((noinline)) int many(int a, int b, int c, int d, int e, int f, int g, int h) {
    char text[300];
    snprintf(text, sizeof text, "%d %d %s %f", a + b, c * d, "x", (double)(e + f + g + h));
    return strlen(text);
}

__attribute__((noinline)) int variable(int n) {
    volatile char bytes[n];
    memset((char *)bytes, 1, n);
    return bytes[n / 2] + fib(3);
}

__attribute__((noinline)) int aligned(int n) {
    _Alignas(64) volatile double v[8] = {n};
    return (int)v[n & 7] + fib(4);
}

__attribute__((noinline)) int everything(int n) {
    int r = 0, values[40];
    for (int i = 0; i < 40; i++)
        values[i] = (i * 7919) % 101;
    qsort(values, 40, sizeof *values, compare);
    r += values[3] + fib(7) + many(1, 2, 3, 4, 5, 6, 7, 8) + variable(100 + n) + aligned(n);
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    free(malloc(100000));
    r += (int)strtod("1.5e3", 0);
    return r;
}

int main(void) {
    farsight_step_begin();
    int r = everything(3);
    unsigned long wrong = farsight_step_end();
    printf("%d steps %lu wrong %lu landing %lu\n", r, farsight_steps(), wrong, farsight_landing());
    return wrong != 0;
}
