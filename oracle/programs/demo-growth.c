/* One routine per way to grow, each called on many sizes; no libc in what is measured, no clock, no chance. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ROUTINE __attribute__((noinline))

static uint32_t seed = 12345;

/* Numerical Recipes' linear congruential generator: the same everywhere. */
static uint32_t next_random(void) {
    seed = seed * 1664525u + 1013904223u;
    return seed >> 8;
}

ROUTINE void fill(int *v, int n) {
    for (int i = 0; i < n; i++) v[i] = (int)(next_random() % 100000);
}

/* n: reads each element once. */
ROUTINE int count_zero(const int *v, int n) {
    int zeros = 0;
    for (int i = 0; i < n; i++) zeros += v[i] == 0;
    return zeros;
}

/* log n cells of n: input size is what is read, so the cost is linear in a size that grows logarithmically. */
ROUTINE int binary_search(const int *v, int n, int wanted) {
    int low = 0, high = n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (v[middle] < wanted) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* n^2 on average. */
ROUTINE void insertion_sort(int *v, int n) {
    for (int i = 1; i < n; i++) {
        int value = v[i], j = i;
        for (; j > 0 && v[j - 1] > value; j--) v[j] = v[j - 1];
        v[j] = value;
    }
}

ROUTINE void merge(int *v, int *spare, int n) {
    int half = n / 2, left = 0, right = half;
    for (int i = 0; i < n; i++)
        spare[i] = right >= n || (left < half && v[left] <= v[right]) ? v[left++] : v[right++];
    for (int i = 0; i < n; i++) v[i] = spare[i];
}

/* n log n, recursive: sizes n, n/2, n/4, ... */
ROUTINE void merge_sort(int *v, int *spare, int n) {
    if (n < 2) return;
    merge_sort(v, spare, n / 2);
    merge_sort(v + n / 2, spare, n - n / 2);
    merge(v, spare, n);
}

/* About n log n: bubble sort with a shrinking gap. */
ROUTINE void comb_sort(int *v, int n) {
    int gap = n, swapped = 1;
    while (gap > 1 || swapped) {
        gap = gap * 10 / 13;
        if (gap < 1) gap = 1;
        swapped = 0;
        for (int i = 0; i + gap < n; i++) {
            if (v[i] > v[i + gap]) {
                int t = v[i];
                v[i] = v[i + gap];
                v[i + gap] = t;
                swapped = 1;
            }
        }
    }
}

/* n^3 steps on 2 n^2 numbers: n^1.5 in the size of the input. */
ROUTINE void multiply(const double *a, const double *b, double *c, int n) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int k = 0; k < n; k++) sum += a[i * n + k] * b[k * n + j];
            c[i * n + j] = sum;
        }
    }
}

struct node {
    int key, count;
    struct node *next;
};

#define BUCKETS 64

/* Degenerate on purpose: keys that are multiples of 64 all meet in one bucket. */
ROUTINE struct node *table_insert(struct node **table, struct node *fresh, int key) {
    struct node **slot = &table[(unsigned)key % BUCKETS];
    for (struct node *node = *slot; node; node = node->next) {
        if (node->key == key) {
            node->count++;
            return node;
        }
    }
    fresh->key = key;
    fresh->count = 1;
    fresh->next = *slot;
    *slot = fresh;
    return fresh;
}

/* n^2 in the number of keys, where a good hash would give n. */
ROUTINE int table_build(const int *keys, struct node *nodes, int n) {
    struct node *table[BUCKETS];
    for (int i = 0; i < BUCKETS; i++) table[i] = NULL;
    int used = 0;
    for (int i = 0; i < n; i++) used += table_insert(table, &nodes[used], keys[i]) == &nodes[used];
    return used;
}

ROUTINE long run_sorts(int *v, int *spare, int n) {
    long checksum = 0;
    fill(v, n);
    merge_sort(v, spare, n);
    checksum += v[n / 2] + binary_search(v, n, v[n / 3]);
    fill(v, n);
    comb_sort(v, n);
    checksum += v[n / 2];
    if (n <= 1500) {
        fill(v, n);
        insertion_sort(v, n);
        checksum += v[n / 2];
    }
    return checksum;
}

int main(void) {
    enum { LARGEST = 4096, MATRIX = 48, KEYS = 256 };
    static int v[LARGEST], spare[LARGEST], keys[KEYS];
    static double a[MATRIX * MATRIX], b[MATRIX * MATRIX], c[MATRIX * MATRIX];
    static struct node nodes[KEYS];
    long checksum = 0;
    for (int n = 4; n <= LARGEST; n = n * 5 / 4 + 1) {
        checksum += run_sorts(v, spare, n);
        fill(v, n);
        checksum += count_zero(v, n);
    }
    for (int n = 10; n <= 1000; n += 90) checksum += count_zero(v, n);
    for (int n = 2; n <= MATRIX; n += 2) {
        for (int i = 0; i < n * n; i++) a[i] = i % 7, b[i] = i % 5;
        multiply(a, b, c, n);
        checksum += (long)c[n + 1];
    }
    for (int n = 4; n <= KEYS; n = n * 5 / 4 + 1) {
        for (int i = 0; i < n; i++) keys[i] = i * BUCKETS;
        checksum += table_build(keys, nodes, n);
    }
    printf("%ld\n", checksum);
    return 0;
}
