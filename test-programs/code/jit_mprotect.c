/* A toy JIT that respects W^X: mprotect to write, to execute, call; 2000 functions in one page, then reuse.
 * Answer: the sum of what they return. */
//@ stdout: sum 1999000, faults when not executable 1
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf out;
static void on_segv(int s) {
    (void)s;
    siglongjmp(out, 1);
}
int main(void) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    volatile long sum = 0;
    for (int i = 0; i < 2000; i++) {
        CHECK(mprotect(p, 4096, PROT_READ | PROT_WRITE) == 0);
        unsigned char *f = p + i % 7 * 64;
        memcpy(f, "\xb8\0\0\0\0\xc3", 6);
        memcpy(f + 1, &i, 4);
        CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
        sum += ((int (*)(void))f)();
    }
    signal(SIGSEGV, on_segv);
    mprotect(p, 4096, PROT_READ | PROT_WRITE);
    volatile int faulted = 0;
    if (sigsetjmp(out, 1) == 0)
        ((int (*)(void))p)();
    else
        faulted = 1;
    printf("sum %ld, faults when not executable %d\n", sum, faulted);
    return 0;
}
