/* gcc -fipa-ra: a caller keeps values in registers that the ABI calls dead, because it knows that the callee leaves
 * them alone. Nothing may be clobbered at calls and returns. Answer: a checksum. */
//@ flags: -O2 -fipa-ra
//@ stdout: 749998500001
#include "micro.h"
__attribute__((noinline, noclone)) static long half(long x) { return x / 2; }
__attribute__((noinline, noclone)) static long plus(long x, long y) { return x + y; }
int main(void) {
    long a = 0, b = 1, c = 2, d = 3, e = 4, f = 5;
    for (long i = 0; i < 1000000; i++) {
        a = plus(a, half(i)) + plus(i, b) - plus(c, d) + 4 + e - f;
        __asm__ volatile("" : "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    }
    printf("%ld\n", a + 500001);
    return 0;
}
