// Exceptions, a degenerate hash, a slow operator++, standard algorithms.
#include <algorithm>
#include <cstdio>
#include <list>
#include <stdexcept>
#include <vector>

static int depth_of_throw;
__attribute__((noinline)) static int thrower(int n) {
    if (n == 0) throw std::runtime_error("bottom");
    return thrower(n - 1) + depth_of_throw;
}
__attribute__((noinline)) static long after_throw(const int *v, int n) {
    long sum = 0;
    try {
        sum += thrower(5);
    } catch (const std::exception &) {
        sum += 1;
    }
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}

// An iterator that finds its next element by walking from the start.
struct Cursor {
    const std::vector<int> *all;
    int at;
    __attribute__((noinline)) Cursor &operator++() {
        volatile int found = 0;
        for (int i = 0; i <= at; i++) found = (*all)[i];
        at++;
        return *this;
    }
};

// A hash table whose hash is constant: one chain.
struct Chain {
    struct Node { Node *next; int key; };
    Node *buckets[16] = {};
    static unsigned hash(int) { return 3; }
    __attribute__((noinline)) void add(int key) {
        Node **p = &buckets[hash(key)];
        while (*p) {
            if ((*p)->key == key) return;
            p = &(*p)->next;
        }
        *p = new Node{nullptr, key};
    }
};

int main() {
    std::vector<int> v(2000);
    for (int i = 0; i < 2000; i++) v[i] = (i * 7919) % 2003;
    long sum = 0;
    for (int n = 100; n <= 1000; n += 100) sum += after_throw(v.data(), n);
    for (Cursor c{&v, 0}; c.at < 400;) ++c;
    Chain chain;
    for (int i = 0; i < 300; i++) chain.add(i);
    std::sort(v.begin(), v.end());
    printf("%ld %d\n", sum, v[1000]);
    return 0;
}
