// A Cholesky factorization by OpenMP tasks between a serial set-up and a serial tear-down. The factorization is parallel
// enough; what keeps the second core idle are the helpers before and after it. Arguments: blocks per side, block size,
// rounds of set-up and tear-down.
#include "idle.h"
#include <math.h>

#define AT(a, i, j) (a)[(size_t)(i) * size + (j)]

static int blocks, size, rounds;
static double **tiles;
#define TILE(i, j) tiles[(i) * blocks + (j)]

__attribute__((noinline)) void set_up(void) {
    int n = blocks * size;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++)
                AT(TILE(i / size, j / size), i % size, j % size) = i == j ? n : cos(i * 0.7 + j * 0.3) * 0.5;
}

__attribute__((noinline)) void potrf(double *a) {
    for (int k = 0; k < size; k++) {
        AT(a, k, k) = sqrt(AT(a, k, k));
        for (int i = k + 1; i < size; i++) AT(a, i, k) /= AT(a, k, k);
        for (int j = k + 1; j < size; j++)
            for (int i = j; i < size; i++) AT(a, i, j) -= AT(a, i, k) * AT(a, j, k);
    }
}

__attribute__((noinline)) void trsm(const double *l, double *a) {
    for (int r = 0; r < size; r++)
        for (int c = 0; c < size; c++) {
            double x = AT(a, r, c);
            for (int k = 0; k < c; k++) x -= AT(a, r, k) * AT(l, c, k);
            AT(a, r, c) = x / AT(l, c, c);
        }
}

__attribute__((noinline)) void gemm(const double *a, const double *b, double *c) {
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            double x = AT(c, i, j);
            for (int k = 0; k < size; k++) x -= AT(a, i, k) * AT(b, j, k);
            AT(c, i, j) = x;
        }
}

__attribute__((noinline)) void factor(void) {
#pragma omp parallel
#pragma omp single
    for (int k = 0; k < blocks; k++) {
        potrf(TILE(k, k));
        for (int i = k + 1; i < blocks; i++)
#pragma omp task firstprivate(i)
            trsm(TILE(k, k), TILE(i, k));
#pragma omp taskwait
        for (int i = k + 1; i < blocks; i++)
            for (int j = k + 1; j <= i; j++)
#pragma omp task firstprivate(i, j)
                gemm(TILE(i, k), TILE(j, k), TILE(i, j));
#pragma omp taskwait
    }
    __asm__ volatile(""); // so that the call of the region is not the function's last act, which would hide it
}

__attribute__((noinline)) double tear_down(void) {
    int n = blocks * size;
    double sum = 0;
    for (int r = 0; r < rounds; r++)
        for (int i = 0; i < n; i++)
            for (int j = 0; j <= i; j++) sum += cos(AT(TILE(i / size, j / size), i % size, j % size));
    return sum;
}

int main(int argc, char **argv) {
    blocks = ARGUMENT(1, 16), size = ARGUMENT(2, 64), rounds = ARGUMENT(3, 10);
    tiles = malloc(sizeof *tiles * blocks * blocks);
    for (int i = 0; i < blocks * blocks; i++) tiles[i] = calloc((size_t)size * size, sizeof(double));
    set_up();
    factor();
    printf("%.6e\n", tear_down());
}
