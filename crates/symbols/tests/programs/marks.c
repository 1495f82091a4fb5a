/* Knows the answer: each MARK records where it is, in a section of pairs (address - here, line, number). */
#include <stdio.h>
#include <string.h>

#define MARK(number)                                                                                  \
    __asm__ volatile("1: nop\n\t.pushsection marks,\"aR\",@progbits\n\t.long 1b - .\n\t.long %c0\n\t" \
                     ".long %c1\n\t.popsection" ::"i"(__LINE__), "i"(number))
#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))

/* Never called: a linker that drops it must not make its debug entry answer for others. */
NOINLINE int dropped(int x) {
    volatile int sum = 0;
    for (int i = 0; i < x; i++) sum += i * x;
    for (int i = 0; i < x; i++) sum ^= i + x;
    for (int i = 0; i < x; i++) sum -= i ^ x;
    return sum;
}

INLINE int inner(int x) {
    MARK(1);
    return x * 3;
}

INLINE int middle(int x) {
    MARK(2);
    int y = inner(x + 1); /* call inner */
    return y ^ 5;
}

NOINLINE int outer(int x) {
    MARK(3);
    int a = middle(x); /* call middle */
    a += middle(a);    /* call middle */
    return a;
}

static NOINLINE int local(int x) {
    MARK(4);
    return outer(x) + 1;
}

int main(int argc, char **argv) {
    MARK(5);
    printf("%d %d\n", local(argc), (int)strlen(argv[0]));
    puts(argv[0]);
    return 0;
}
