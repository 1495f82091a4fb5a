// Figure 1 of the Cilkprof paper, with the parts filled in that it leaves out. No explicit wait but one.
#include <cilk/cilk.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#define COARSENING 32

static unsigned long state = 1;
static long my_rand(long n) {
    state = state * 6364136223846793005UL + 1442695040888963407UL;
    return (long)((state >> 33) % (unsigned long)n);
}

int partition(long array[], int low, int high) {
    long pivot = array[low + my_rand(high - low)];
    int l = low - 1;
    int r = high;
    while (true) {
        do { ++l; } while (array[l] < pivot);
        do { --r; } while (array[r] > pivot);
        if (l < r) {
            long tmp = array[l];
            array[l] = array[r];
            array[r] = tmp;
        } else {
            return (l == low ? l + 1 : l);
    } } }

void pqsort(long array[], int low, int high) {
    if (high - low < COARSENING) {
        for (int i = low + 1; i < high; i++) {
            long v = array[i];
            int j = i - 1;
            while (j >= low && array[j] > v) { array[j + 1] = array[j]; j--; }
            array[j + 1] = v;
        }
    } else {
        int part = partition(array, low, high);
        cilk_spawn pqsort(array, low, part);
        pqsort(array, part, high);
        cilk_sync;
    } }

int main(int argc, char *argv[]) {
    int n;
    long *A;
    n = argc > 1 ? atoi(argv[1]) : 100000;
    A = malloc((size_t)n * sizeof *A);
    for (int i = 0; i < n; i++) A[i] = my_rand(1000000000);
    pqsort(A, 0, n);
    for (int i = 1; i < n; i++) if (A[i - 1] > A[i]) { puts("not sorted"); return 1; }
    printf("%ld\n", A[n / 2]);
    free(A);
    return 0;
}
