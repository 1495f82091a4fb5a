/* Unbalanced binary search tree, 500,000 random keys, inserted recursively, then summed by recursion: calls, returns
 * and malloc. */
#include <stdio.h>
#include <stdlib.h>
struct tree {
    struct tree *left, *right;
    unsigned key;
};
static struct tree *insert(struct tree *t, unsigned key) {
    if (!t) {
        t = calloc(1, sizeof *t);
        t->key = key;
    } else if (key < t->key)
        t->left = insert(t->left, key);
    else if (key > t->key)
        t->right = insert(t->right, key);
    return t;
}
static unsigned long sum(const struct tree *t, int depth) {
    return t ? t->key % 1000 + depth + sum(t->left, depth + 1) + sum(t->right, depth + 1) : 0;
}
int main(void) {
    struct tree *root = 0;
    unsigned x = 1;
    for (int i = 0; i < 500000; i++) root = insert(root, (x = x * 1664525 + 1013904223) >> 3);
    printf("%lu\n", sum(root, 0));
    return 0;
}
