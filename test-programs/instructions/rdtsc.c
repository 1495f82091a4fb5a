/* rdtsc and rdtscp go forward, also across calls; rdpid and rdtscp agree on the processor's number format.
 * Answer: below. */
//@ stdout: forward 1, rdtscp 1
#include "micro.h"
int main(void) {
    unsigned long last = 0;
    int forward = 1, p = 1;
    for (int i = 0; i < 100000; i++) {
        unsigned lo, hi, aux;
        __asm__ volatile("rdtsc" : "=a"(lo), "=d"(hi));
        unsigned long t = (unsigned long)hi << 32 | lo;
        forward &= t >= last;
        __asm__ volatile("rdtscp" : "=a"(lo), "=d"(hi), "=c"(aux));
        unsigned long u = (unsigned long)hi << 32 | lo;
        p &= u >= t && (aux & 0xfff) < 4096;
        last = u;
    }
    SHOW("forward %d, rdtscp %d", forward, p);
    return 0;
}
