// Fast Fourier transform by halves, out of place; a plain transform for BASE and less.
#include <cilk/cilk.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"
#ifndef BASE
#define BASE 32
#endif
#define BLOCK 512

typedef struct { double re, im; } C;

static C *roots;
static long whole;

static void small(const C *in, long stride, C *out, long n) {
    AGAIN for (long k = 0; k < n; k++) {
        C sum = {0, 0};
        for (long j = 0; j < n; j++) {
            C w = roots[j * k % n * (whole / n)], x = in[j * stride];
            sum.re += x.re * w.re - x.im * w.im;
            sum.im += x.re * w.im + x.im * w.re;
        }
        out[k] = sum;
    }
}

static void butterflies(C *out, long n, long from, long to) {
    if (to - from > 512) {
        long middle = (from + to) / 2;
        cilk_spawn butterflies(out, n, from, middle);
        butterflies(out, n, middle, to);
        cilk_sync;
        return;
    }
    for (long k = from; k < to; k++) {
        C w = roots[k * (whole / n)], e = out[k], o = out[k + n / 2];
        C t = {o.re * w.re - o.im * w.im, o.re * w.im + o.im * w.re};
        out[k] = (C){e.re + t.re, e.im + t.im};
        out[k + n / 2] = (C){e.re - t.re, e.im - t.im};
    }
}

static void fft(const C *in, long stride, C *out, long n) {
    if (n <= BASE) { small(in, stride, out, n); return; }
    cilk_spawn fft(in, 2 * stride, out, n / 2);
    fft(in + stride, 2 * stride, out + n / 2, n / 2);
    cilk_sync;
    butterflies(out, n, 0, n / 2);
}

static void prepare(C *in, long from, long to) {
    for (long i = from; i < to; i++) {
        double angle = -2 * 3.14159265358979323846 * i / whole;
        roots[i] = (C){cos(angle), sin(angle)};
        in[i] = (C){i % 17, i % 5};
    }
}

int main(int argc, char **argv) {
    whole = argc > 1 ? atol(argv[1]) : 1 << 19;
    C *in = malloc(sizeof(C) * whole), *out = malloc(sizeof(C) * whole);
    roots = malloc(sizeof(C) * whole);
    cilk_for (long block = 0; block < whole; block += BLOCK) prepare(in, block, block + BLOCK < whole ? block + BLOCK : whole);
    fft(in, 1, out, whole);
    printf("%.3f %.3f\n", out[1].re, out[whole / 3].im);
    free(in);
    free(out);
    free(roots);
    return 0;
}
