// Matrix multiplication by Strassen's seven products; plain loops for BASE and less.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include "slow.h"
#ifndef BASE
#define BASE 32
#endif

typedef double M;

static void base(const M *a, int da, const M *b, int db, M *c, int dc, int n) {
    AGAIN for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) c[i * dc + j] = 0;
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++) c[i * dc + j] += a[i * da + k] * b[k * db + j];
    }
}

// out = x + sign * y
static void combine(M *out, int d, const M *x, int dx, const M *y, int dy, double sign, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) out[i * d + j] = x[i * dx + j] + sign * y[i * dy + j];
}

static void gather(M *c, int dc, M *const m[7], int h) {
    for (int i = 0; i < h; i++)
        for (int j = 0; j < h; j++) {
            int at = i * h + j;
            c[i * dc + j] = m[0][at] + m[3][at] - m[4][at] + m[6][at];
            c[i * dc + j + h] = m[2][at] + m[4][at];
            c[(i + h) * dc + j] = m[1][at] + m[3][at];
            c[(i + h) * dc + j + h] = m[0][at] - m[1][at] + m[2][at] + m[5][at];
        }
}

static void strassen(const M *a, int da, const M *b, int db, M *c, int dc, int n);

// One product of sums: (x + sx y) (u + su v).
static void product(const M *x, const M *y, double sx, int da, const M *u, const M *v, double su, int db, M *out, int h) {
    M *left = malloc(sizeof(M) * h * h), *right = malloc(sizeof(M) * h * h);
    combine(left, h, x, da, y, da, sx, h);
    combine(right, h, u, db, v, db, su, h);
    strassen(left, h, right, h, out, h, h);
    free(left);
    free(right);
}

static void strassen(const M *a, int da, const M *b, int db, M *c, int dc, int n) {
    if (n <= BASE) { base(a, da, b, db, c, dc, n); return; }
    int h = n / 2;
    const M *a11 = a, *a12 = a + h, *a21 = a + h * da, *a22 = a21 + h;
    const M *b11 = b, *b12 = b + h, *b21 = b + h * db, *b22 = b21 + h;
    M *store = malloc(sizeof(M) * 7 * h * h), *m[7];
    for (int i = 0; i < 7; i++) m[i] = store + i * h * h;
    cilk_spawn product(a11, a22, 1, da, b11, b22, 1, db, m[0], h);
    cilk_spawn product(a21, a22, 1, da, b11, b11, 0, db, m[1], h);
    cilk_spawn product(a11, a11, 0, da, b12, b22, -1, db, m[2], h);
    cilk_spawn product(a22, a22, 0, da, b21, b11, -1, db, m[3], h);
    cilk_spawn product(a11, a12, 1, da, b22, b22, 0, db, m[4], h);
    cilk_spawn product(a21, a11, -1, da, b11, b12, 1, db, m[5], h);
    product(a12, a22, -1, da, b21, b22, 1, db, m[6], h);
    cilk_sync;
    gather(c, dc, m, h);
    free(store);
}

int main(int argc, char **argv) {
    int n = argc > 1 ? atoi(argv[1]) : 512, times = argc > 2 ? atoi(argv[2]) : 1;
    M *a = malloc(sizeof(M) * n * n), *b = malloc(sizeof(M) * n * n), *c = malloc(sizeof(M) * n * n);
    for (int i = 0; i < n * n; i++) { a[i] = i % 7; b[i] = i % 5; }
    for (int i = 0; i < times; i++) strassen(a, n, b, n, c, n, n);
    printf("%.0f\n", c[n + 1]);
    free(a);
    free(b);
    free(c);
    return 0;
}
