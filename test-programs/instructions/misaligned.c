/* Accesses of every width at every misalignment over a page boundary, loads, stores and read-modify-write.
 * Answer: a checksum. */
//@ stdout: checksum c198eeb9fcb8758f
#include "micro.h"
#include <emmintrin.h>
#include <sys/mman.h>
int main(void) {
    unsigned char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    unsigned long sum = 1;
    for (int lap = 0; lap < 20; lap++)
        for (int o = 4096 - 40; o < 4096 + 8; o++) {
            *(volatile unsigned short *)(p + o) += (unsigned short)(o + lap);
            *(volatile unsigned *)(p + o + 3) ^= 0x12345678u + o;
            *(volatile unsigned long *)(p + o + 5) -= 0x1122334455667788ul * lap;
            _mm_storeu_si128((void *)(p + o), _mm_add_epi8(_mm_loadu_si128((void *)(p + o + 7)), _mm_set1_epi8(3)));
            __asm__ volatile("lock xaddq %0, (%1)" : "+r"(sum) : "r"(p + o) : "memory", "cc");
            sum = sum * 31 + *(unsigned long *)(p + o + 1);
        }
    SHOW("checksum %lx", sum);
    return 0;
}
