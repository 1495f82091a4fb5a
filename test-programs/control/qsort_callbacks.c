/* Callbacks from libc into the program and back: qsort, bsearch, twalk, atexit; function pointers in a table.
 * Answer: below. */
//@ stdout: sorted 1, found 1, nodes 1000, compared 1
#include "../check.h"
#include <search.h>
static long compared, nodes;
static int order(const void *a, const void *b) {
    compared++;
    return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}
static void walk(const void *n, VISIT v, int depth) {
    (void)n, (void)depth;
    if (v == postorder || v == leaf) nodes++;
}
int main(void) {
    enum { N = 200000 };
    int *v = malloc(N * sizeof *v);
    unsigned x = 1;
    for (int i = 0; i < N; i++) v[i] = (int)(x = x * 1664525 + 1013904223);
    qsort(v, N, sizeof *v, order);
    int sorted = 1;
    for (int i = 1; i < N; i++) sorted &= v[i - 1] <= v[i];
    int *f = bsearch(&v[777], v, N, sizeof *v, order);
    void *root = 0;
    for (int i = 0; i < 1000; i++) tsearch(&v[i * 7], &root, order);
    twalk(root, walk);
    printf("sorted %d, found %d, nodes %ld, compared %d\n", sorted, f && *f == v[777], nodes, compared > N);
    return 0;
}
