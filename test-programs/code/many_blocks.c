/* Ten thousand generated functions, called in turn, then overwritten and called again: pressure on the translation
 * memory and its bookkeeping. Answer: the sums. */
//@ stdout: 49995000 99980000
#include "../check.h"
#include <sys/mman.h>
int main(void) {
    enum { N = 10000, STEP = 128 };
    unsigned char *p = mmap(0, N * STEP, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < N; i++) {
            int v = i * (round + 1) - round;
            /* cmp edi, 5; jne +1 (over ret); nop; mov eax, v; ret */
            memcpy(p + i * STEP, "\x83\xff\x05\x75\x01\x90\xb8\0\0\0\0\xc3", 12);
            memcpy(p + i * STEP + 7, &v, 4);
        }
        long sum = 0;
        for (int r = 0; r < 3; r++, sum = r < 3 ? 0 : sum)
            for (int i = 0; i < N; i++) sum += ((int (*)(int))(p + i * STEP))(r + 3);
        printf("%ld%c", sum, round ? '\n' : ' ');
    }
    return 0;
}
