/* Every lock form on memory, from two threads: add, sub, inc, dec, neg, not, and, or, xor, bts, btr, btc, xadd, xchg,
 * cmpxchg, cmpxchg8b, cmpxchg16b. Answer: totals as if alone. */
//@ flags: -pthread -mcx16
//@ stdout: add 200000, xadd 200000, cmpxchg 200000, cmpxchg16b 200000:200000, bits 0, inc-dec 0, xchg kept 1, 8b 200000
//@ repeat: 3
#include "micro.h"
#include <pthread.h>
static volatile long add, xadd, cas, bits, incdec, token = 1;
static volatile unsigned long eight;
static volatile struct {
    long lo, hi;
} wide __attribute__((aligned(16)));
static int kept = 1;
static void *work(void *a) {
    long me = (long)a;
    for (int i = 0; i < 100000; i++) {
        __asm__ volatile("lock addq $1, %0" : "+m"(add)::"cc");
        long one = 1;
        __asm__ volatile("lock xaddq %1, %0" : "+m"(xadd), "+r"(one)::"cc", "memory");
        unsigned char ok;
        do {
            long old = cas, new = old + 1;
            __asm__ volatile("lock cmpxchgq %3, %0; setz %1" : "+m"(cas), "=q"(ok), "+a"(old) : "r"(new) : "cc", "memory");
        } while (!ok);
        do {
            long lo = wide.lo, hi = wide.hi;
            __asm__ volatile("lock cmpxchg16b %0; setz %1" : "+m"(wide), "=q"(ok), "+a"(lo), "+d"(hi) : "b"(lo + 1), "c"(hi + 1) : "cc", "memory");
        } while (!ok);
        do {
            unsigned long o = eight;
            unsigned lo = (unsigned)o, hi = (unsigned)(o >> 32);
            __asm__ volatile("lock cmpxchg8b %0; setz %1" : "+m"(eight), "=q"(ok), "+a"(lo), "+d"(hi) : "b"((unsigned)(o + 1)), "c"((unsigned)((o + 1) >> 32)) : "cc", "memory");
        } while (!ok);
        __asm__ volatile("lock btsq %1, %0; lock btcq %1, %0; lock btcq %1, %0; lock btrq %1, %0" : "+m"(bits) : "r"(me + 3) : "cc");
        __asm__ volatile("lock orq %1, %0; lock xorq %1, %0; lock andq %2, %0" : "+m"(bits) : "r"(1l << (me + 40)), "r"(~(1l << (me + 50))) : "cc");
        __asm__ volatile("lock incq %0; lock decq %0; lock subq $5, %0; lock addq $5, %0" : "+m"(incdec)::"cc");
        long t = 0;
        __asm__ volatile("xchgq %1, %0" : "+m"(token), "+r"(t)::"memory");
        if (t != 0 && t != 1) kept = 0;
        if (t) __asm__ volatile("xchgq %1, %0" : "+m"(token), "+r"(t)::"memory");
    }
    return 0;
}
int main(void) {
    pthread_t t[2];
    for (long i = 0; i < 2; i++) CHECK(pthread_create(&t[i], 0, work, (void *)i) == 0);
    for (int i = 0; i < 2; i++) pthread_join(t[i], 0);
    volatile long n = 5;
    __asm__ volatile("lock negq %0; lock notq %0" : "+m"(n)::"cc");
    kept &= n == 4 && token == 1;
    SHOW("add %ld, xadd %ld, cmpxchg %ld, cmpxchg16b %ld:%ld, bits %ld, inc-dec %ld, xchg kept %d, 8b %ld", add, xadd, cas, wide.lo,
         wide.hi, bits, incdec, kept, eight);
    return 0;
}
