/* Code moved by mremap: runs at the new address, the old one faults; then other code moves in.
 * Answer: below. */
//@ stdout: moved 1, old faults 1, other 2
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

static sigjmp_buf out;
static void on_segv(int s) {
    (void)s;
    siglongjmp(out, 1);
}
static unsigned char *page(int v) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(p, "\xb8\0\0\0\0\xc3", 6);
    memcpy(p + 1, &v, 4);
    return p;
}
static int call(void *p) { return ((int (*)(void))p)(); }
int main(void) {
    unsigned char *a = page(1), *b = page(2);
    unsigned char *room = mmap(0, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(call(a) == 1 && call(b) == 2);
    unsigned char *c = mremap(a, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, room);
    CHECK(c == room);
    int moved = call(c);
    signal(SIGSEGV, on_segv);
    volatile int faulted = 0;
    if (sigsetjmp(out, 1) == 0)
        call(a);
    else
        faulted = 1;
    CHECK(mremap(b, 4096, 4096, MREMAP_MAYMOVE | MREMAP_FIXED, a) == a);
    printf("moved %d, old faults %d, other %d\n", moved, faulted, call(a));
    return 0;
}
