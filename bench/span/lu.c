// LU decomposition without pivots, by blocks: a diagonal block, its row and column, then the rest.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#define B 16

static int n;
static double *a;
#define AT(i, j) a[(i) * n + (j)]

static void diagonal(int k) {
    for (int p = k; p < k + B; p++)
        for (int i = p + 1; i < k + B; i++) {
            AT(i, p) /= AT(p, p);
            for (int j = p + 1; j < k + B; j++) AT(i, j) -= AT(i, p) * AT(p, j);
        }
}

static void row(int k, int c) {
    for (int p = k; p < k + B; p++)
        for (int i = p + 1; i < k + B; i++)
            for (int j = c; j < c + B; j++) AT(i, j) -= AT(i, p) * AT(p, j);
}

static void column(int k, int r) {
    for (int i = r; i < r + B; i++)
        for (int p = k; p < k + B; p++) {
            AT(i, p) /= AT(p, p);
            for (int j = p + 1; j < k + B; j++) AT(i, j) -= AT(i, p) * AT(p, j);
        }
}

static void inner(int k, int r, int c) {
    for (int i = r; i < r + B; i++)
        for (int p = k; p < k + B; p++) {
            double f = AT(i, p);
            for (int j = c; j < c + B; j++) AT(i, j) -= f * AT(p, j);
        }
}

static void lu(void) {
    for (int k = 0; k < n; k += B) {
        diagonal(k);
        cilk_for (int c = k + B; c < n; c += B) {
            row(k, c);
            column(k, c);
        }
        cilk_for (int r = k + B; r < n; r += B) {
            cilk_for (int c = k + B; c < n; c += B) inner(k, r, c);
        }
    }
}

int main(int argc, char **argv) {
    n = argc > 1 ? atoi(argv[1]) : 1024;
    a = malloc(sizeof(double) * n * n);
    unsigned long state = 1;
    for (int i = 0; i < n * n; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        a[i] = (double)(state >> 40) / (1 << 24) + (i % (n + 1) == 0 ? n : 0);
    }
    lu();
    printf("%.6f\n", AT(n - 1, n - 1));
    free(a);
    return 0;
}
