// Figure 8 of the Cilkprof paper, complete. The last calls are waited for by the function's return.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#define COARSENING 32

static void base(double *C, double *A, double *B, int dim, int n) {
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++)
            for (int j = 0; j < n; j++)
                C[i * dim + j] += A[i * dim + k] * B[k * dim + j];
}

void mm(double *C, double *A, double *B, int dim, int n) {
    if (n <= COARSENING) {
        base(C, A, B, dim, n);
        return;
    }
#define X(M,r,c) (M + (r * dim + c)*(n/2))
    cilk_spawn mm(X(C,0,0), X(A,0,0), X(B,0,0),
                  dim, n/2);
    cilk_spawn mm(X(C,0,1), X(A,0,0), X(B,0,1),
                  dim, n/2);
    cilk_spawn mm(X(C,1,0), X(A,1,0), X(B,0,0),
                  dim, n/2);
    mm(X(C,1,1), X(A,1,0), X(B,0,1),
       dim, n/2);
    cilk_sync;
    cilk_spawn mm(X(C,0,0), X(A,0,1), X(B,1,0),
                  dim, n/2);
    cilk_spawn mm(X(C,0,1), X(A,0,1), X(B,1,1),
                  dim, n/2);
    cilk_spawn mm(X(C,1,0), X(A,1,1), X(B,1,0),
                  dim, n/2);
    mm(X(C,1,1), X(A,1,1), X(B,1,1),
       dim, n/2);
}

int main(int argc, char *argv[]) {
    double *C, *A, *B;
    int n;
    n = argc > 1 ? atoi(argv[1]) : 256;
    C = calloc((size_t)n * n, sizeof *C);
    A = calloc((size_t)n * n, sizeof *A);
    B = calloc((size_t)n * n, sizeof *B);
    for (int i = 0; i < n * n; i++) { A[i] = i % 7; B[i] = i % 5; }
    mm(C, A, B, n, n);
    printf("%.0f\n", C[n + 1]);
    free(A);
    free(B);
    free(C);
    return 0;
}
