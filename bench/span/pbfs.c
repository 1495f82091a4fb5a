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

static int pbfs(int start) {
    int depth = 0, n = 1;
    distance[start] = 0;
    layer[0] = start;
    while (n > 0) {
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

int main(int argc, char **argv) {
    vertices = argc > 1 ? atoi(argv[1]) : 1000000;
    degree = argc > 2 ? atoi(argv[2]) : 4;
    int reach = argc > 3 ? atoi(argv[3]) : 40000;
    edges = malloc(sizeof(int) * (size_t)vertices * degree);
    distance = malloc(sizeof(int) * vertices);
    layer = malloc(sizeof(int) * vertices);
    next = malloc(sizeof(int) * vertices);
    unsigned long state = 1;
    for (long i = 0; i < (long)vertices * degree; i++) {
        // Neighbours lie within `reach`, so that the search has many layers.
        state = state * 6364136223846793005UL + 1442695040888963407UL;
        long to = i / degree + (long)((state >> 33) % (unsigned long)reach) - reach / 3;
        edges[i] = (int)((to + vertices) % vertices);
    }
    for (int i = 0; i < vertices; i++) distance[i] = -1;
    printf("%d layers\n", pbfs(0));
    long sum = 0;
    for (int i = 0; i < vertices; i++) sum += distance[i];
    printf("%ld\n", sum);
    free(edges);
    free(distance);
    free(layer);
    free(next);
    return 0;
}
