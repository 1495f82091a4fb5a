/* Chained hash table: 600,000 inserts, 2 million look-ups, half of them misses; cache misses and pointer chasing. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
struct node {
    struct node *next;
    uint64_t key, value;
};
enum { BUCKETS = 1 << 18 };
static struct node *table[BUCKETS];
static uint64_t mix(uint64_t x) {
    x ^= x >> 31, x *= 0x7fb5d329728ea185, x ^= x >> 27, x *= 0x81dadef4bc2dd44d;
    return x ^ x >> 33;
}
static struct node *find(uint64_t key) {
    for (struct node *n = table[mix(key) % BUCKETS]; n; n = n->next)
        if (n->key == key) return n;
    return 0;
}
static void put(uint64_t key, uint64_t value) {
    struct node *n = find(key);
    if (!n) {
        n = malloc(sizeof *n);
        struct node **b = &table[mix(key) % BUCKETS];
        n->next = *b, n->key = key, *b = n;
    }
    n->value = value;
}
int main(void) {
    uint64_t hits = 0, sum = 0;
    for (uint64_t i = 0; i < 600000; i++) put(i * 2, i);
    for (uint64_t i = 0; i < 2000000; i++) {
        struct node *n = find(mix(i) % 1200000);
        if (n) hits++, sum += n->value;
    }
    printf("%lu %lu\n", hits, sum);
    return 0;
}
