/* What breaks shadow stacks: deep recursion, longjmp, signals, tail calls, untouched memory, an allocator's own data. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

__attribute__((noinline, noclone)) static long deep(long n) {
    volatile long x = n;
    if (n == 0) return x;
    return deep(n - 1) + x;
}

static jmp_buf out;
__attribute__((noinline, noclone)) static int descend(int n) {
    volatile int x = n;
    if (n == 0) longjmp(out, 1);
    return descend(n - 1) + x;
}

static volatile int signals;
__attribute__((noinline, noclone)) static void handler(int s) { signals += s != 0; }

/* Sums twice with a signal in between: the second time nothing is new. */
__attribute__((noinline, noclone)) static long work(const int *v, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    raise(SIGUSR1);
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}

/* even and odd call each other by jumps: n activations that read one cell each, none nested in another. */
__attribute__((noinline, noclone)) static int odd(const int *v, int n);
__attribute__((noinline, noclone)) static int even(const int *v, int n) { return n == 0 ? 1 : odd(v + 1, n - 1 + v[0]); }
__attribute__((noinline, noclone)) static int odd(const int *v, int n) { return n == 0 ? 0 : even(v + 1, n - 1 + v[0]); }

struct node { struct node *next; int key; };
static struct node *table[64];
/* Reads the bucket (2 cells) and writes the rest: what malloc reads is not its input. */
__attribute__((noinline, noclone)) static void insert(int key) {
    struct node *n = malloc(sizeof *n);
    n->key = key;
    n->next = table[key & 63];
    table[key & 63] = n;
}

int main(int argc, char **argv) {
    static int v[64];
    long sum = deep(argc > 1 ? atol(argv[1]) : 20000);
    signal(SIGUSR1, handler);
    for (int i = 0; i < 20; i++) {
        if (!setjmp(out)) descend(i);
        sum += work(v, 10 + i);
    }
    sum += even(v, 40);
    for (int i = 0; i < 500; i++) insert(i * 7);
    char *big = mmap(0, 512 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    big[12345] = 1;
    printf("%ld %d %d\n", sum, signals, big[12345]);
    return 0;
}
