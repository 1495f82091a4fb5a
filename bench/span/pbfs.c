// Parallel breadth-first search in the manner of PBFS: each layer is a bag of vertices that is halved until a piece is
// small enough to be searched serially. GRAIN is that size. A large one is a constant serial piece on every layer, which
// is what the profile of the Cilkprof paper found in PBFS; compile with -DGRAIN=... to see the difference.
//
// Run as its serial elision, so that the bags are plain arrays: what the reducers of the original do in parallel.
#include <cilk/cilk.h>
#include <stdio.h>
#include <stdlib.h>
#ifndef GRAIN
#define GRAIN 512
#endif

static int vertices, degree;
static int *edges, *distance, *layer, *next;
static int found;

static void search(const int *bag, int n, int depth) {
    for (int i = 0; i < n; i++) {
        const int *out = edges + (long)bag[i] * degree;
        for (int e = 0; e < degree; e++) {
            int to = out[e];
            if (distance[to] < 0) {
                distance[to] = depth;
                next[found++] = to;
            }
        }
    }
}

static void walk_bag(const int *bag, int n, int depth) {
    if (n <= GRAIN) {
        search(bag, n, depth);
        return;
    }
    cilk_spawn walk_bag(bag, n / 2, depth);
    walk_bag(bag + n / 2, n - n / 2, depth);
    cilk_sync;
}

// How many layers there are; `sum` is that of all distances.
static int pbfs(int start, long *sum) {
    int depth = 0, n = 1;
    distance[start] = 0;
    layer[0] = start;
    while (n > 0) {
        *sum += (long)depth * n;
        depth++;
        found = 0;
        walk_bag(layer, n, depth);
        int *t = layer;
        layer = next;
        next = t;
        n = found;
    }
    return depth;
}

static unsigned long mix(unsigned long x) {
    x = (x ^ x >> 31) * 0x9e3779b97f4a7c15UL;
    return x ^ x >> 29;
}

// Neighbours lie within `reach`, so that the search has many layers.
static void connect(int from, int to, int reach) {
    for (int v = from; v < to; v++) {
        distance[v] = -1;
        for (int e = 0; e < degree; e++) {
            long there = v + (long)(mix((unsigned long)v * degree + e + 1) % (unsigned long)reach) - reach / 3;
            edges[(long)v * degree + e] = (int)((there + vertices) % vertices);
        }
    }
}

int main(int argc, char **argv) {
    vertices = argc > 1 ? atoi(argv[1]) : 1000000;
    degree = argc > 2 ? atoi(argv[2]) : 4;
    int reach = argc > 3 ? atoi(argv[3]) : 40000;
    edges = malloc(sizeof(int) * (size_t)vertices * degree);
    distance = malloc(sizeof(int) * vertices);
    layer = malloc(sizeof(int) * vertices);
    next = malloc(sizeof(int) * vertices);
    cilk_for (int from = 0; from < vertices; from += 512) {
        connect(from, from + 512 < vertices ? from + 512 : vertices, reach);
    }
    long sum = 0;
    int layers = pbfs(0, &sum);
    printf("%d layers\n%ld\n", layers, sum);
    free(edges);
    free(distance);
    free(layer);
    free(next);
    return 0;
}
