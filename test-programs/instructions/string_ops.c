/* String instructions: rep movs/stos/lods/cmps/scas, all widths, forward and with DF=1, rcx=0, overlapping, and the
 * registers that they leave. Answer: below. */
//@ stdout: movs 1 backward 1 overlap 1 stos 1 lods 1 cmps 1 scas 1 zero count 1 single 1
#include "micro.h"
static unsigned char a[4096], b[4096];
int main(void) {
    int movs = 1, back = 1, overlap = 1, stos = 1, lods = 1, cmps = 1, scas = 1, zero = 1, single = 1;
    for (int lap = 0; lap < 50; lap++) {
        for (int i = 0; i < 4096; i++) a[i] = (unsigned char)(i * 7 + lap);
        unsigned long s, d, c;
#define REP(op, n) \
        s = (unsigned long)a, d = (unsigned long)b, c = n, memset(b, 0, sizeof b); \
        __asm__ volatile("rep " op : "+S"(s), "+D"(d), "+c"(c)::"memory", "cc")
        REP("movsb", 1001);
        movs &= !memcmp(a, b, 1001) && b[1001] == 0 && s == (unsigned long)a + 1001 && d == (unsigned long)b + 1001 && c == 0;
        REP("movsw", 501);
        movs &= !memcmp(a, b, 1002) && b[1002] == 0;
        REP("movsl", 251);
        movs &= !memcmp(a, b, 1004) && b[1004] == 0;
        REP("movsq", 126);
        movs &= !memcmp(a, b, 1008) && b[1008] == 0;
        s = (unsigned long)a + 999, d = (unsigned long)b + 999, c = 1000, memset(b, 0, sizeof b);
        __asm__ volatile("std; rep movsb; cld" : "+S"(s), "+D"(d), "+c"(c)::"memory", "cc");
        back &= !memcmp(a, b, 1000) && s == (unsigned long)a - 1 && d == (unsigned long)b - 1;
        s = (unsigned long)a + 800, d = (unsigned long)b + 800, c = 100, memset(b, 0, sizeof b);
        __asm__ volatile("std; rep movsq; cld" : "+S"(s), "+D"(d), "+c"(c)::"memory", "cc");
        back &= !memcmp(a + 8, b + 8, 800) && b[7] == 0 && b[808] == 0;
        memcpy(b, "ab", 2);
        s = (unsigned long)b, d = (unsigned long)b + 2, c = 998;
        __asm__ volatile("rep movsb" : "+S"(s), "+D"(d), "+c"(c)::"memory");
        for (int i = 0; i < 1000; i++) overlap &= b[i] == "ab"[i % 2];
        d = (unsigned long)b, c = 100;
        __asm__ volatile("rep stosl" : "+D"(d), "+c"(c) : "a"(0x01020304) : "memory");
        for (int i = 0; i < 400; i++) stos &= b[i] == 4 - i % 4;
        d = (unsigned long)b + 79, c = 80;
        __asm__ volatile("std; rep stosb; cld" : "+D"(d), "+c"(c) : "a"(9) : "memory", "cc");
        stos &= b[0] == 9 && b[79] == 9 && b[80] == 4 && d == (unsigned long)b - 1;
        unsigned long rax = 0;
        s = (unsigned long)a, c = 33;
        __asm__ volatile("rep lodsb" : "+S"(s), "+c"(c), "+a"(rax)::"memory");
        lods &= rax == a[32] && s == (unsigned long)a + 33;
        memcpy(b, a, 1000);
        b[500] ^= 1;
        unsigned char z, cf;
        s = (unsigned long)a, d = (unsigned long)b, c = 1000;
        __asm__ volatile("repe cmpsb; setz %3; setc %4" : "+S"(s), "+D"(d), "+c"(c), "=q"(z), "=q"(cf)::"memory", "cc");
        cmps &= c == 499 && !z && s == (unsigned long)a + 501 && cf == (a[500] < b[500]);
        s = (unsigned long)a + 499 * 2, d = (unsigned long)b + 499 * 2, c = 400;
        __asm__ volatile("std; repe cmpsw; setz %3; cld" : "+S"(s), "+D"(d), "+c"(c), "=q"(z)::"memory", "cc");
        cmps &= !z && s == (unsigned long)a + 498;
        d = (unsigned long)a, c = 4096;
        __asm__ volatile("repne scasb; setz %2" : "+D"(d), "+c"(c), "=q"(z) : "a"(a[100]) : "memory", "cc");
        scas &= z && *(unsigned char *)(d - 1) == a[100] && d <= (unsigned long)a + 101;
        memset(b, 5, 64);
        b[40] = 6;
        d = (unsigned long)b, c = 64;
        __asm__ volatile("repe scasb; setz %2" : "+D"(d), "+c"(c), "=q"(z) : "a"(5) : "memory", "cc");
        scas &= !z && d == (unsigned long)b + 41;
        s = 8, d = 8, c = 0; /* nothing is touched, flags stay */
        __asm__ volatile("cmp %%eax, %%eax; stc; rep movsb; rep stosb; repe cmpsb; repne scasq; setz %3; setc %4"
                         : "+S"(s), "+D"(d), "+c"(c), "=q"(z), "=q"(cf)::"memory", "cc", "rax");
        zero &= z && cf && s == 8 && d == 8;
        s = (unsigned long)a, d = (unsigned long)b;
        __asm__ volatile("movsb; movsw; movsl; movsq; lodsb; stosb" : "+S"(s), "+D"(d)::"memory", "rax");
        single &= !memcmp(a, b, 16) && s == (unsigned long)a + 16;
    }
    SHOW("movs %d backward %d overlap %d stos %d lods %d cmps %d scas %d zero count %d single %d", movs, back, overlap, stos, lods,
         cmps, scas, zero, single);
    return 0;
}
