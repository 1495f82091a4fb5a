// Merge sort with a parallel merge: insertion sort for 32 and less, serial merges for 128 and less.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void insertion(int *a, long n) {
    for (long i = 1; i < n; i++) {
        int v = a[i];
        long j = i - 1;
        while (j >= 0 && a[j] > v) { a[j + 1] = a[j]; j--; }
        a[j + 1] = v;
    }
}

static void merge_serial(const int *a, long n, const int *b, long m, int *out) {
    while (n > 0 && m > 0) {
        if (*b < *a) { *out++ = *b++; m--; } else { *out++ = *a++; n--; }
    }
    memcpy(out, n > 0 ? a : b, (size_t)(n > 0 ? n : m) * sizeof *out);
}

static void merge(const int *a, long n, const int *b, long m, int *out) {
    if (n + m <= 128) { merge_serial(a, n, b, m, out); return; }
    if (n < m) { merge(b, m, a, n, out); return; }
    long half = n / 2, low = 0, high = m;
    while (low < high) {
        long middle = (low + high) / 2;
        if (b[middle] < a[half]) low = middle + 1; else high = middle;
    }
    cilk_spawn merge(a, half, b, low, out);
    merge(a + half, n - half, b + low, m - low, out + half + low);
    cilk_sync;
}

static void sort(int *a, int *spare, long n) {
    if (n <= 32) { insertion(a, n); return; }
    long half = n / 2;
    cilk_spawn sort(a, spare, half);
    sort(a + half, spare + half, n - half);
    cilk_sync;
    merge(a, half, a + half, n - half, spare);
    memcpy(a, spare, (size_t)n * sizeof *a);
}

int main(int argc, char **argv) {
    long n = argc > 1 ? atol(argv[1]) : 1000000;
    int *a = malloc((size_t)n * sizeof *a), *spare = malloc((size_t)n * sizeof *a);
    unsigned long state = 1;
    for (long i = 0; i < n; i++) {
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        a[i] = (int)(state >> 34);
    }
    sort(a, spare, n);
    for (long i = 1; i < n; i++) if (a[i - 1] > a[i]) { puts("not sorted"); return 1; }
    printf("%d\n", a[n / 2]);
    free(a);
    free(spare);
    return 0;
}
