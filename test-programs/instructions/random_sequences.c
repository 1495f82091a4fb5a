/* Random instruction sequences: general and flag arithmetic of all widths, memory operands into a sandbox, stack, string,
 * SSE, AVX2, masked and gathered, x87, locked forms, short forward jumps, calls, indirect jumps. Each starts from
 * known registers, flags, vectors and memory, runs three times, and what it leaves behind is hashed.
 * random_sequences [SEED [FIRST [COUNT [LENGTH [DROP...]]]]]: with a FIRST, one line for each sequence; DROP names
 * instructions to leave out, for making a failure smaller. */
//@ flags: -O1
//@ args: 1
#include "../check.h"
#include <sys/mman.h>

#define SANDBOX 4096
#define BYTES_EACH 4096
typedef unsigned char u8;

static uint64_t rng;
static unsigned rnd(unsigned n) {
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)((rng >> 11) % n);
}

static u8 *at;
static void b1(unsigned x) { *at++ = (u8)x; }
static void b2(unsigned x, unsigned y) { b1(x), b1(y); }
static void b3(unsigned x, unsigned y, unsigned z) { b2(x, y), b1(z); }
static void d32(unsigned x) { memcpy(at, &x, 4), at += 4; }

static int dropping;
static unsigned has_avx2;

/* A general register, not rsp and not r15, which holds the sandbox. */
static unsigned reg(void) {
    unsigned r = rnd(14);
    return r >= 4 ? r + 1 : r;
}
/* ModRM for [r15+disp32] with `r` in the middle; REX bits: B set. */
static void memory(unsigned r, unsigned bytes) {
    b1(0x80 | (r & 7) << 3 | 7);
    d32(rnd(SANDBOX - bytes));
}
static void rex(unsigned w, unsigned r, unsigned b) { b1(0x40 | w << 3 | (r >> 3) << 2 | b); }

/* opcode reg, reg or reg, [mem] or [mem], reg; `op` is the 8-bit form, +1 the wider ones. */
static void general(unsigned op) {
    unsigned r = reg(), m = reg(), width = rnd(4), mem = rnd(2);
    if (width == 1) b1(0x66);
    rex(width == 3, r, mem ? 1 : m >> 3);
    b1(op | (width != 0));
    if (mem) memory(r, 8);
    else b1(0xc0 | (r & 7) << 3 | (m & 7));
}
static void two_byte(unsigned op, int memory_too) {
    unsigned r = reg(), m = reg(), width = rnd(3), mem = memory_too && rnd(2);
    if (width == 0) b1(0x66);
    rex(width == 2, r, mem ? 1 : m >> 3);
    b2(0x0f, op);
    if (mem) memory(r, 8);
    else b1(0xc0 | (r & 7) << 3 | (m & 7));
}
static void unary(unsigned op, unsigned n) {
    unsigned m = reg(), width = rnd(4), mem = rnd(2);
    if (width == 1) b1(0x66);
    rex(width == 3, 0, mem ? 1 : m >> 3);
    b1(op | (width != 0));
    if (mem) memory(n, 8);
    else b1(0xc0 | n << 3 | (m & 7));
}
/* rsi and rdi into the sandbox, ecx small: then a string instruction, perhaps repeated, perhaps backward. */
static void string(void) {
    static const u8 ops[] = {0xa4, 0xa6, 0xaa, 0xac, 0xae};
    unsigned op = ops[rnd(5)] | rnd(2), wide = rnd(3), rep = rnd(3), back = rnd(4) == 0;
    b3(0x49, 0x8d, 0xb7), d32(1200 + rnd(600)); /* lea rsi, [r15+..] */
    b3(0x49, 0x8d, 0xbf), d32(2400 + rnd(600)); /* lea rdi, [r15+..] */
    b1(0xb9), d32(rnd(40));                     /* mov ecx, .. */
    if (back) b1(0xfd);
    if (rep) b1(op >= 0xa6 && op <= 0xaf && rep == 2 ? 0xf2 : 0xf3);
    if ((op & 1) && wide == 1) b1(0x66);
    if ((op & 1) && wide == 2) b1(0x48);
    b1(op);
    if (back) b1(0xfc);
}
static void vector(void) {
    static const u8 ops[] = {0xfe, 0xfa, 0xef, 0xdb, 0xeb, 0x74, 0xd4, 0xfb, 0xf4, 0x60, 0x6d};
    static const u8 fops[] = {0x58, 0x59, 0x5c, 0x5d, 0x54, 0x57, 0x14};
    unsigned x = rnd(8), y = rnd(8);
    switch (rnd(has_avx2 ? 12 : 6)) {
    case 0: b1(0x41), b2(0x0f, 0x10), memory(x, 16); break;                         /* movups x, [m] */
    case 1: b1(0x41), b2(0x0f, 0x11), memory(x, 16); break;                         /* movups [m], x */
    case 2: b1(0x66), b2(0x0f, ops[rnd(11)]), b1(0xc0 | x << 3 | y); break;         /* paddd x, y ... */
    case 3: b2(0x0f, fops[rnd(7)]), b1(0xc0 | x << 3 | y); break;                   /* addps x, y ... */
    case 4: b1(0x66), b1(0x41), b2(0x0f, 0xd6), memory(x, 8); break;                /* movq [m], x */
    case 5: b1(0xf2), b1(0x41), b2(0x0f, 0x10), memory(x, 8); break;                /* movsd x, [m] */
    case 6: b3(0xc4, 0xc1, 0x7e), b1(0x6f), memory(x, 32); break;                   /* vmovdqu y, [m] */
    case 7: b3(0xc4, 0xc1, 0x7e), b1(0x7f), memory(x, 32); break;                   /* vmovdqu [m], y */
    case 8: b2(0xc5, 0x80 | (~rnd(8) & 15) << 3 | 5), b2(0xfe, 0xc0 | x << 3 | y); break; /* vpaddd */
    case 9: b3(0xc4, 0xc2, (~rnd(8) & 15) << 3 | 5), b1(0x8c), memory(x, 32); break;      /* vpmaskmovd y, m, [m] */
    case 10: b3(0xc4, 0xc2, (~rnd(8) & 15) << 3 | 5), b1(0x8e), memory(x, 32); break;     /* vpmaskmovd [m], m, y */
    default: {
        /* vpsrld y1, y, 24: indices below 256; vpgatherdd y0, [r15+y1*4], y2 */
        unsigned i = 1 + rnd(3), k = 4 + rnd(4);
        b2(0xc5, 0x80 | (~i & 15) << 3 | 5), b3(0x72, 0xd0 | rnd(8), 24);
        b3(0xc4, 0xc2, (~k & 15) << 3 | 5), b3(0x90, 0x04, 0x87 | i << 3);
    }
    }
}
/* Behind instructions that leave flags undefined, which nobody may look at: cmp reg, reg. */
static void define_flags(void) {
    unsigned r = reg(), m = reg();
    rex(1, r, m >> 3), b1(0x39), b1(0xc0 | (r & 7) << 3 | (m & 7));
}
static void one(int depth);
static void control(void) {
    u8 *fix;
    switch (rnd(5)) {
    case 0: /* jcc over the next one */
        b2(0x70 | rnd(16), 0), fix = at, one(1), fix[-1] = (u8)(at - fix);
        break;
    case 1: /* call over a leaf */
        b2(0xeb, 0), fix = at, one(1), b1(0xc3), fix[-1] = (u8)(at - fix);
        b1(0xe8), d32((unsigned)(fix - (at + 4)));
        break;
    case 2: /* lea r14, [rip+3]; jmp r14; (one byte of rubbish) */
        b3(0x4c, 0x8d, 0x35), d32(4), b3(0x41, 0xff, 0xe6), b1(0x06);
        break;
    case 3: /* lea r14, [rip+..]; call r14; jmp over; leaf */
        b3(0x4c, 0x8d, 0x35), d32(5), b3(0x41, 0xff, 0xd6), b2(0xeb, 0), fix = at, one(1), b1(0xc3);
        fix[-1] = (u8)(at - fix);
        break;
    default: /* push, something, pop */
        b2(0x41, 0x50 | rnd(7)), one(1), b2(0x41, 0x58 | rnd(7));
    }
}
static void one(int depth) {
    static const u8 shifts[] = {0, 1, 2, 3, 4, 5, 7};
    u8 *start = at;
    switch (rnd(depth ? 17 : 20)) {
    case 0: case 1: case 2: general(rnd(8) << 3 | rnd(2) << 1); break;    /* add ... cmp */
    case 3: general(0x88 | rnd(2) << 1); break;                           /* mov */
    case 4: general(0x84 | rnd(2) << 1); break;                           /* test, xchg */
    case 5: unary(0xf6, 2 + rnd(3)), define_flags(); break;                               /* not, neg, mul */
    case 6: unary(0xfe, rnd(2)); break;                                   /* inc, dec */
    case 7: unary(0xc0, shifts[rnd(7)]), b1(rnd(40)), define_flags(); break;
    case 8: unary(0xd2, shifts[rnd(7)]), define_flags(); break;                           /* by cl */
    case 9: two_byte(0x40 | rnd(16), 1); break;                           /* cmov */
    case 10: two_byte(0xaf, 1), define_flags(); break;                                    /* imul */
    case 11: { unsigned m = reg(); rex(0, 0, m >> 3), b2(0x0f, 0x90 | rnd(16)), b1(0xc0 | (m & 7)); break; } /* set */
    case 12: { static const u8 o[] = {0xb6, 0xb7, 0xbe, 0xbf, 0xbc, 0xbd}; two_byte(o[rnd(6)], 1), define_flags(); break; }
    case 13: { static const u8 o[] = {0xf8, 0xf9, 0xf5, 0x9e, 0x99, 0x98}; b1(o[rnd(6)]); break; }
    case 14: case 15: vector(); break;
    case 16: { /* lock xadd or cmpxchg */
        unsigned r = reg(), w = rnd(2);
        b1(0xf0), rex(w, r, 1), b2(0x0f, rnd(2) ? 0xc1 : 0xb1), memory(r, 8);
        break;
    }
    case 17: string(); break;
    case 18: control(); break;
    default: /* fld, fadd, fstp */
        b2(0x41, 0xdd), memory(0, 8), b2(0x41, 0xdc), memory(0, 8), b2(0x41, 0xdd), memory(3, 8);
    }
    if (dropping && !depth) at = start;
}

enum { GPR = SANDBOX, FLAGS = SANDBOX + 15 * 8, VECTOR = SANDBOX + 256, TOTAL = SANDBOX + 1024 };
static void each_register(int store) {
    for (unsigned r = 0; r < 15; r++) {
        if (r == 4) continue;
        rex(1, r, 1), b1(store ? 0x89 : 0x8b), b1(0x80 | (r & 7) << 3 | 7), d32(GPR + r * 8);
    }
    for (unsigned x = 0; x < 8; x++) {
        if (has_avx2) b3(0xc4, 0xc1, 0x7e), b1(store ? 0x7f : 0x6f);
        else b1(0x41), b2(0x0f, store ? 0x11 : 0x10);
        b1(0x80 | x << 3 | 7), d32(VECTOR + x * 32);
    }
}
static void sequence(unsigned length, int drops, char **drop) {
    b1(0x53), b1(0x55), b2(0x41, 0x54), b2(0x41, 0x55), b2(0x41, 0x56), b2(0x41, 0x57);
    b3(0x49, 0x89, 0xff);                                  /* mov r15, rdi */
    b3(0x41, 0xff, 0xb7), d32(FLAGS), b1(0x9d);            /* push [flags]; popfq */
    each_register(0);
    for (unsigned i = 0; i < length; i++) {
        dropping = 0;
        for (int d = 0; d < drops; d++) dropping |= (unsigned)atoi(drop[d]) == i;
        one(0);
    }
    each_register(1);
    b1(0x9c), b3(0x41, 0x8f, 0x87), d32(FLAGS);            /* pushfq; pop [flags] */
    if (has_avx2) b3(0xc5, 0xf8, 0x77);
    b2(0x41, 0x5f), b2(0x41, 0x5e), b2(0x41, 0x5d), b2(0x41, 0x5c), b1(0x5d), b1(0x5b), b1(0xc3);
}

int main(int argc, char **argv) {
    uint64_t seed = argc > 1 ? strtoul(argv[1], 0, 0) : 1;
    unsigned first = argc > 2 ? (unsigned)atoi(argv[2]) : 0, count = argc > 3 ? (unsigned)atoi(argv[3]) : 1500;
    unsigned length = argc > 4 ? (unsigned)atoi(argv[4]) : 40;
    has_avx2 = __builtin_cpu_supports("avx2") != 0;
    /* Addresses end up in registers: they must be the same in every run. */
    u8 *code = mmap((void *)0x20000000, (size_t)count * BYTES_EACH, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    u8 *state = mmap((void *)0x10000000, 2 * SANDBOX, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(code != MAP_FAILED && state != MAP_FAILED);
    for (unsigned k = 0; k < count; k++) {
        rng = (seed << 32) + (first + k) * 2654435761u + 88172645463325252ull;
        at = code + (size_t)k * BYTES_EACH;
        sequence(length, argc > 5 ? argc - 5 : 0, argv + 5);
        CHECK(at < code + (size_t)(k + 1) * BYTES_EACH);
    }
    CHECK(mprotect(code, (size_t)count * BYTES_EACH, PROT_READ | PROT_EXEC) == 0);
    uint64_t all = 0;
    for (unsigned k = 0; k < count; k++) {
        uint64_t hash = 1469598103934665603ull;
        for (int lap = 0; lap < 3; lap++) {
            rng = seed * 977 + first + k + 1;
            for (unsigned i = 0; i < TOTAL; i += 8) rnd(1), memcpy(state + i, &rng, 8);
            uint64_t flags = 0x202 | (rnd(2) ? 0x8d5 : 0);
            memcpy(state + FLAGS, &flags, 8);
            ((void (*)(void *))(code + (size_t)k * BYTES_EACH))(state);
            state[FLAGS] &= (u8)~0x10; /* the auxiliary carry: undefined behind logical instructions */
            uint64_t word;
            for (unsigned i = 0; i < TOTAL; i += 8) {
                memcpy(&word, state + i, 8);
                hash = (hash ^ word) * 1099511628211ull;
            }
        }
        if (argc > 2) printf("%u %016lx\n", first + k, hash);
        all = all * 31 + hash;
    }
    printf("%u sequences, %016lx\n", count, all);
    return 0;
}
