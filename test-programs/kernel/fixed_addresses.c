/* A program that asks for particular addresses gets them where nothing of its own is: low 4 GB, 1 TB, 64 TB,
 * a 64 GB reservation. Answer: below. */
//@ stdout: low 1, 1 TB 1, 64 TB 1, reserved 64 GB 1, 32-bit 1
#include "../check.h"
#include <sys/mman.h>
static int at(unsigned long a) {
    void *p = mmap((void *)a, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    return p == (void *)a && memset(p, 1, 65536) == p;
}
int main(void) {
    void *big = mmap(0, 64ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void *low = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    printf("low %d, 1 TB %d, 64 TB %d, reserved 64 GB %d, 32-bit %d\n", at(0x20000000), at(1ul << 40), at(1ul << 46),
           big != MAP_FAILED, low != MAP_FAILED && (uintptr_t)low < 1ul << 32);
    return 0;
}
