/* Recursive merge sort of 4 million ints: sequential streams, unpredictable branches, n log n calls at the leaves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static void sort(int *v, int *t, long n) {
    if (n < 2) return;
    long h = n / 2, i = 0, j = h, k = 0;
    sort(v, t, h);
    sort(v + h, t + h, n - h);
    while (i < h && j < n) t[k++] = v[i] <= v[j] ? v[i++] : v[j++];
    while (i < h) t[k++] = v[i++];
    while (j < n) t[k++] = v[j++];
    memcpy(v, t, n * sizeof *v);
}
int main(void) {
    long n = 4000000;
    int *v = malloc(n * sizeof *v), *t = malloc(n * sizeof *t);
    unsigned x = 12345;
    for (long i = 0; i < n; i++) v[i] = (int)((x = x * 1664525 + 1013904223) >> 1);
    sort(v, t, n);
    for (long i = 1; i < n; i++)
        if (v[i - 1] > v[i]) return 1;
    printf("%d %d %d\n", v[0], v[n / 2], v[n - 1]);
    return 0;
}
