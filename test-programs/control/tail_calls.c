/* Mutual tail calls, direct and through pointers, and switch tables: jumps between functions without frames.
 * Answer: 3,000,000 hops in constant stack. */
//@ flags: -foptimize-sibling-calls
//@ stdout: 3000000 hops, classes 750000 750000 750000 750000
#include "../check.h"
static long hops, classes[4];
static void a(long), b(long), c(long);
static void (*const table[])(long) = {a, b, c};
__attribute__((noinline)) static int classify(long n) {
    switch (n % 8) {
    case 0: case 5: return 0;
    case 1: case 4: return 1;
    case 2: case 7: return 2;
    default: return 3;
    }
}
__attribute__((noinline)) static void a(long n) {
    hops++;
    classes[classify(n)]++;
    if (n > 1) return table[1](n - 1);
}
__attribute__((noinline)) static void b(long n) {
    hops++;
    classes[classify(n)]++;
    if (n > 1) return c(n - 1);
}
__attribute__((noinline)) static void c(long n) {
    hops++;
    classes[classify(n)]++;
    if (n > 1) return table[0](n - 1);
}
int main(void) {
    a(3000000);
    printf("%ld hops, classes %ld %ld %ld %ld\n", hops, classes[0], classes[1], classes[2], classes[3]);
    return 0;
}
