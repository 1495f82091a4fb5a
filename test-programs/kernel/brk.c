/* brk belongs to the program alone: grows contiguously for 64 MB, shrinks, comes back zeroed.
 * Answer: below. */
//@ stdout: contiguous 1, zeroed 1
#include "../check.h"
int main(void) {
    char *start = sbrk(0);
    int contiguous = 1, zeroed = 1;
    for (int i = 0; i < 64; i++) {
        char *p = sbrk(1 << 20);
        contiguous &= p == start + ((long)i << 20);
        memset(p, i, 1 << 20);
    }
    CHECK(brk(start) == 0);
    CHECK(sbrk(1 << 20) == start);
    for (int i = 8192; i < 1 << 20; i++) zeroed &= start[i] == 0;
    printf("contiguous %d, zeroed %d\n", contiguous, zeroed);
    return 0;
}
