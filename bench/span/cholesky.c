// Cholesky decomposition of a dense matrix, recursive: factor a quarter, solve for the one below, update the last.
#include <cilk/cilk.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define BASE 16

static int dim;
#define AT(m, i, j) (m)[(i) * dim + (j)]

static void factor_base(double *a, int n) {
    for (int j = 0; j < n; j++) {
        double d = AT(a, j, j);
        for (int k = 0; k < j; k++) d -= AT(a, j, k) * AT(a, j, k);
        AT(a, j, j) = d = sqrt(d);
        for (int i = j + 1; i < n; i++) {
            double s = AT(a, i, j);
            for (int k = 0; k < j; k++) s -= AT(a, i, k) * AT(a, j, k);
            AT(a, i, j) = s / d;
        }
    }
}

// b := b l^-T
static void solve_base(const double *l, double *b, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = AT(b, i, j);
            for (int k = 0; k < j; k++) s -= AT(b, i, k) * AT(l, j, k);
            AT(b, i, j) = s / AT(l, j, j);
        }
}

// c -= a b^T
static void update_base(double *c, const double *a, const double *b, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            double s = 0;
            for (int k = 0; k < n; k++) s += AT(a, i, k) * AT(b, j, k);
            AT(c, i, j) -= s;
        }
}

static void update(double *c, const double *a, const double *b, int n) {
    if (n <= BASE) { update_base(c, a, b, n); return; }
    int h = n / 2, down = h * dim;
    cilk_spawn update(c, a, b, h);
    cilk_spawn update(c + h, a, b + down, h);
    cilk_spawn update(c + down, a + down, b, h);
    update(c + down + h, a + down, b + down, h);
    cilk_sync;
    cilk_spawn update(c, a + h, b + h, h);
    cilk_spawn update(c + h, a + h, b + down + h, h);
    cilk_spawn update(c + down, a + down + h, b + h, h);
    update(c + down + h, a + down + h, b + down + h, h);
    cilk_sync;
}

static void solve(const double *l, double *b, int n) {
    if (n <= BASE) { solve_base(l, b, n); return; }
    int h = n / 2, down = h * dim;
    cilk_spawn solve(l, b, h);
    solve(l, b + down, h);
    cilk_sync;
    cilk_spawn update(b + h, b, l + down, h);
    update(b + down + h, b + down, l + down, h);
    cilk_sync;
    cilk_spawn solve(l + down + h, b + h, h);
    solve(l + down + h, b + down + h, h);
    cilk_sync;
}

static void factor(double *a, int n) {
    if (n <= BASE) { factor_base(a, n); return; }
    int h = n / 2, down = h * dim;
    factor(a, h);
    solve(a, a + down, h);
    update(a + down + h, a + down, a + down, h);
    factor(a + down + h, h);
}

int main(int argc, char **argv) {
    dim = argc > 1 ? atoi(argv[1]) : 1024;
    double *a = malloc(sizeof(double) * dim * dim);
    for (int i = 0; i < dim; i++)
        for (int j = 0; j < dim; j++) AT(a, i, j) = i == j ? dim : 1.0 / (1 + abs(i - j));
    factor(a, dim);
    printf("%.6f\n", AT(a, dim - 1, dim - 1));
    free(a);
    return 0;
}
