/* Flags carried to a destination that shares its place in a lookup with others where flags are dead. An engine that
 * finds its way by hashing addresses tests "is it you?" at the wrong ones first, and those tests must leave flags alone.
 * indirect: jumps to addresses with equal low halves of their CRC-32C; return: two return addresses 64 KB apart;
 * warm: callees that were first called from places where flags are dead. Answer: below. */
//@ stdout: indirect 1, return 1, warm 1
#include "micro.h"
#include <sys/mman.h>

#define BYTES (32u << 20)
#define OTHERS 12

static unsigned place_of(const void *p) {
    unsigned long crc = 0;
    __asm__("crc32q %1, %0" : "+r"(crc) : "r"(p));
    return crc & 0xffff;
}

static void put(unsigned char *at, const char *code, size_t n) { memcpy(at, code, n); }

static void put_call(unsigned char *at, const unsigned char *to) {
    int d = (int)(to - (at + 5));
    at[0] = 0xe8;
    memcpy(at + 1, &d, 4);
}

/* Sets CF and ZF, then goes to `to`, which returns. */
static unsigned go(const void *to) {
    unsigned r;
    __asm__ volatile("lea -128(%%rsp), %%rsp; cmp %%rdx, %%rdx; stc; call *%%rdx; lea 128(%%rsp), %%rsp"
                     : "=a"(r)
                     : "d"(to)
                     : "memory", "cc");
    return r & 0xffff;
}

int main(void) {
    unsigned char *buf = mmap(0, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(buf != MAP_FAILED);
    /* lands: setc al; setz ah; ret */
    unsigned char *lands = buf + 0x100;
    put(lands, "\x0f\x92\xc0\x0f\x94\xc4\xc3", 7);
    /* The others: xor eax, eax; ret */
    unsigned char *others[OTHERS];
    int n = 0;
    for (unsigned char *p = buf + 0x40000; n < OTHERS && p < buf + BYTES - 64; p += 16) {
        if (place_of(p) == place_of(lands)) {
            put(p, "\x31\xc0\xc3", 3);
            others[n++] = p;
        }
    }
    CHECK(n == OTHERS);
    /* site: call gives; setc al; movzx eax, al; ret       far: call leaf; xor eax, eax; ret   (64 KB behind site)
     * gives: call far; stc; ret                           leaf: ret
     * friend: call gives; xor eax, eax; ret               (warms `gives` up) */
    unsigned char *site = buf + 0x1000, *gives = buf + 0x1040, *leaf = buf + 0x1080, *far = site + 0x10000,
                  *friend = buf + 0x10c0;
    put_call(site, gives);
    put(site + 5, "\x0f\x92\xc0\x0f\xb6\xc0\xc3", 7);
    put_call(gives, far);
    put(gives + 5, "\xf9\xc3", 2);
    put(leaf, "\xc3", 1);
    put_call(far, leaf);
    put(far + 5, "\x31\xc0\xc3", 3);
    put_call(friend, gives);
    put(friend + 5, "\x31\xc0\xc3", 3);
    /* site2: call thin; setc al; movzx eax, al; ret   friend2: the same with xor eax, eax   thin: stc; ret */
    unsigned char *site2 = buf + 0x2000, *thin = buf + 0x2040, *friend2 = buf + 0x2080;
    put_call(site2, thin);
    put(site2 + 5, "\x0f\x92\xc0\x0f\xb6\xc0\xc3", 7);
    put(thin, "\xf9\xc3", 2);
    put_call(friend2, thin);
    put(friend2 + 5, "\x31\xc0\xc3", 3);
    CHECK(mprotect(buf, BYTES, PROT_READ | PROT_EXEC) == 0);

    int indirect = 1, ret = 1, warm = 1;
    for (int lap = 0; lap < LAPS; lap++) {
        for (int i = 0; i < 4; i++) indirect &= go(lands) == 0x0101;
        for (int i = 0; i < OTHERS; i++) {
            indirect &= go(others[i]) == 0;
            indirect &= go(lands) == 0x0101;
        }
    }
    for (int lap = 0; lap < LAPS; lap++) CHECK(go(friend2) == 0 && go(friend) == 0);
    for (int lap = 0; lap < LAPS; lap++) warm &= go(site2) == 1;
    for (int lap = 0; lap < LAPS; lap++) {
        ret &= go(site) == 1;
        CHECK(go(friend) == 0);
    }
    SHOW("indirect %d, return %d, warm %d", indirect, ret, warm);
    return 0;
}
