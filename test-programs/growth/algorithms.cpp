// Routines whose growth is known: a comb sort, an iterator whose ++ is linear, a hash table whose hash is none.
#include <cstdint>
#include <vector>

#define ROUTINE __attribute__((noinline))

static uint32_t state = 1;
static uint32_t next_random() { return state = state * 1664525u + 1013904223u; }

ROUTINE void comb_sort(int *v, int n) {
    bool swapped = true;
    for (int gap = n; gap > 1 || swapped;) {
        gap = gap > 1 ? gap * 10 / 13 : 1;
        if (gap == 0) gap = 1;
        swapped = false;
        for (int i = 0; i + gap < n; i++)
            if (v[i] > v[i + gap]) {
                int t = v[i];
                v[i] = v[i + gap];
                v[i + gap] = t;
                swapped = true;
            }
    }
}

// Walks over the set places of a sparse array.
struct Sparse {
    const int *at, *end;
    ROUTINE Sparse &operator++() {
        do ++at;
        while (at != end && *at == 0);
        return *this;
    }
};

struct Table {
    struct Node {
        Node *next;
        int key;
    };
    Node *buckets[64] = {};
    std::vector<Node> nodes;
    ROUTINE static unsigned hash(int) { return 7; }
    ROUTINE bool contains(int key) const {
        for (const Node *node = buckets[hash(key)]; node; node = node->next)
            if (node->key == key) return true;
        return false;
    }
    ROUTINE void fill(int n) {
        nodes.reserve(n);
        for (int key = 0; key < n; key++)
            if (!contains(key)) {
                nodes.push_back({buckets[hash(key)], key});
                buckets[hash(key)] = &nodes.back();
            }
    }
};

int main() {
    for (int n = 64; n <= 16384; n = n * 3 / 2) {
        std::vector<int> v(n);
        for (int &x : v) x = next_random() >> 8;
        comb_sort(v.data(), n);
        for (int i = 1; i < n; i++)
            if (v[i - 1] > v[i]) return 1;
    }
    std::vector<int> sparse(20000);
    int at = 0, gaps = 0;
    for (int gap = 3; at < 20000; gap = gap * 5 / 4 + 1, gaps++) sparse[at] = 1, at += gap;
    int seen = 0;
    for (Sparse it{sparse.data(), sparse.data() + sparse.size()}; it.at != it.end; ++it) seen++;
    for (int n = 10; n <= 640; n = n * 3 / 2) {
        Table table;
        table.fill(n);
    }
    return seen != gaps;
}
