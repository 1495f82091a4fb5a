/* Code in memory that was never mapped by name: a page of the heap (brk), and one of the stack, made executable.
 * Answer: what the code returns. */
//@ stdout: heap 41, stack 42
#include "../check.h"
#include <stdint.h>
#include <sys/mman.h>

static int run(unsigned char *p, int v) {
    memcpy(p, "\xb8\0\0\0\0\xc3", 6);
    memcpy(p + 1, &v, 4);
    CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
    return ((int (*)(void))p)();
}
int main(void) {
    char room[3 * 4096];
    unsigned char *heap = sbrk(3 * 4096);
    CHECK(heap != (void *)-1);
    unsigned char *on_heap = (unsigned char *)(((uintptr_t)heap + 4095) & ~4095ul);
    unsigned char *on_stack = (unsigned char *)(((uintptr_t)room + 4095) & ~4095ul);
    printf("heap %d, stack %d\n", run(on_heap, 41), run(on_stack, 42));
    return 0;
}
