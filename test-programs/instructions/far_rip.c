/* RIP-relative operands whose target is almost 2 GB away, in both directions, and direct calls as far: a copy of the
 * code elsewhere must still reach. Answer: below. */
//@ stdout: up 77, down 88, call 99, store 5
#include "micro.h"
#include <sys/mman.h>
#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
#define FIXED (MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE)
static void rel(unsigned char *at, int offset, unsigned char *target) {
    long d = target - (at + offset + 4);
    CHECK(d == (int)d);
    int v = (int)d;
    memcpy(at + offset, &v, 4);
}
int main(void) {
    unsigned char *base = (unsigned char *)0x200000000000;
    unsigned char *mid = mmap(base + 0x7fff0000, 4096, RWX, FIXED, -1, 0), *low = mmap(base, 4096, RWX, FIXED, -1, 0),
                  *high = mmap(base + 0xfffd0000, 4096, RWX, FIXED, -1, 0);
    CHECK(mid != MAP_FAILED && low != MAP_FAILED && high != MAP_FAILED);
    *(int *)high = 77, *(int *)low = 88;
    memcpy(mid, "\x8b\x05\0\0\0\0\xc3", 7), rel(mid, 2, high);
    memcpy(mid + 16, "\x8b\x05\0\0\0\0\xc3", 7), rel(mid + 16, 2, low);
    memcpy(low + 64, "\xb8\x63\0\0\0\xc3", 6);
    memcpy(mid + 32, "\xe8\0\0\0\0\xc3", 6), rel(mid + 32, 1, low + 64);
    memcpy(mid + 48, "\xc7\x05\0\0\0\0\x05\0\0\0\xc3", 11);
    int v = (int)((high + 8) - (mid + 48 + 10));
    memcpy(mid + 50, &v, 4);
    int up = 0, down = 0, call = 0;
    for (int i = 0; i < LAPS; i++) {
        up = ((int (*)(void))mid)(), down = ((int (*)(void))(mid + 16))(), call = ((int (*)(void))(mid + 32))();
        ((void (*)(void))(mid + 48))();
    }
    SHOW("up %d, down %d, call %d, store %d", up, down, call, *(int *)(high + 8));
    return 0;
}
