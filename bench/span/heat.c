// Heat on a plate: every step computes each band of rows from the step before, bands in parallel by halving.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"
#define BAND 8

static int nx, ny;

static void rows(const double *old, double *new, int from, int to) {
    AGAIN for (int i = from; i < to; i++)
        for (int j = 1; j < ny - 1; j++) {
            const double *at = old + i * ny + j;
            new[i * ny + j] = *at + 0.1 * (at[1] + at[-1] - 2 * *at) + 0.1 * (at[ny] + at[-ny] - 2 * *at);
        }
}

static void band(const double *old, double *new, int from, int to) {
    if (to - from > BAND) {
        int middle = (from + to) / 2;
        cilk_spawn band(old, new, from, middle);
        band(old, new, middle, to);
        cilk_sync;
        return;
    }
    rows(old, new, from, to);
}

int main(int argc, char **argv) {
    int steps = argc > 1 ? atoi(argv[1]) : 200;
    nx = argc > 2 ? atoi(argv[2]) : 1024;
    ny = argc > 3 ? atoi(argv[3]) : nx;
    double *old = calloc((size_t)nx * ny, sizeof *old), *new = calloc((size_t)nx * ny, sizeof *new);
    for (int j = 0; j < ny; j++) old[j] = new[j] = 100;
    for (int s = 0; s < steps; s++) {
        band(old, new, 1, nx - 1);
        double *t = old;
        old = new;
        new = t;
    }
    printf("%.6f\n", old[ny + ny / 2]);
    free(old);
    free(new);
    return 0;
}
