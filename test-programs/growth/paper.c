/* The examples of the first paper, and a merge sort: sizes by hand. Parameters are in registers, so that only what they
 * point to counts. */
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline, noclone)) static int get(const int *v, int i) { return v[i]; }
__attribute__((noinline, noclone)) static int mid(const int *v, int n) { return get(v, n / 2) + 1; }

__attribute__((noinline, noclone)) static int count_zero(const int *v, int n) {
    int zeros = 0;
    for (int i = 0; i < n; i++) zeros += v[i] == 0;
    return zeros;
}

__attribute__((noinline, noclone)) static int count_zero_rec(const int *v, int n) {
    if (n == 0) return 0;
    return (v[n - 1] == 0) + count_zero_rec(v, n - 1);
}

/* Reads a and b once each although it reads them twice, and its caller knows one of them. */
__attribute__((noinline, noclone)) static int twice(volatile int *a, volatile int *b) { return *a + *b + *a + *b; }
__attribute__((noinline, noclone)) static int knows_one(volatile int *a, volatile int *b) {
    *a = 1;
    return twice(a, b) + 1;
}

__attribute__((noinline, noclone)) static void merge_sort(int *a, int *t, int n) {
    if (n < 2) return;
    int h = n / 2, i = 0, j = h, k = 0;
    merge_sort(a, t, h);
    merge_sort(a + h, t, n - h);
    while (i < h && j < n) t[k++] = a[i] < a[j] ? a[i++] : a[j++];
    while (i < h) t[k++] = a[i++];
    while (j < n) t[k++] = a[j++];
    for (i = 0; i < n; i++) a[i] = t[i];
}

int main(void) {
    enum { N = 1024 };
    int *v = malloc(N * sizeof *v), *t = malloc(N * sizeof *t);
    unsigned x = 1;
    for (int i = 0; i < N; i++) v[i] = (x = x * 1103515245 + 12345) >> 20;
    int sum = 0;
    for (int n = 1; n <= 10; n++) sum += mid(v, n) + count_zero(v, 10 * n);
    sum += count_zero_rec(v, 12);
    sum += knows_one(&v[0], &v[1]);
    merge_sort(v, t, N);
    for (int i = 1; i < N; i++) if (v[i - 1] > v[i]) return 1;
    printf("%d\n", sum != 0);
    free(v);
    free(t);
    return 0;
}
