/* Code at one address replaced by unmapping and mapping anew: MAP_FIXED over it, munmap + mmap, a file mapping,
 * MADV_DONTNEED, and a dual mapping written through its other address. Stale code must never run.
 * Answer: each step's own number, 200 rounds. */
//@ limit-s: 300
//@ stdout: fixed 200, anew 200, file 200, dropped 200, dual 200
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#define RWX (PROT_READ | PROT_WRITE | PROT_EXEC)
static sigjmp_buf out;
static void on_segv(int s) {
    (void)s;
    siglongjmp(out, 1);
}
static void put(unsigned char *p, int v) {
    memcpy(p, "\xb8\0\0\0\0\xc3", 6);
    memcpy(p + 1, &v, 4);
}
static int call(void *p) { return ((int (*)(void))p)(); }
int main(void) {
    volatile int fixed = 0, anew = 0, file = 0, dropped = 0, dual = 0;
    unsigned char *p = mmap(0, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int fd = memfd_create("code", 0);
    CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
    unsigned char *w = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *x = mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    signal(SIGSEGV, on_segv);
    for (volatile int i = 0; i < 200; i++) {
        put(p, i);
        CHECK(call(p) == i);
        CHECK(mmap(p, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
        put(p, i + 1);
        fixed += call(p) == i + 1;
        munmap(p, 4096);
        CHECK(mmap(p, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == p);
        put(p, i + 2);
        anew += call(p) == i + 2;
        unsigned char image[8];
        put(image, i + 3);
        CHECK(pwrite(fd, image, 6, 0) == 6);
        CHECK(mmap(p, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) == p);
        file += call(p) == i + 3;
        CHECK(mmap(p, 4096, RWX, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == p);
        put(p, 77);
        p[64] = 0xc3;
        CHECK(call(p) == 77);
        CHECK(madvise(p, 4096, MADV_DONTNEED) == 0);
        if (sigsetjmp(out, 1) == 0)
            call(p); /* now "add [rax], al" with rax = 77: faults */
        else
            dropped++;
        put(w, i + 4);
        dual += call(x) == i + 4;
    }
    printf("fixed %d, anew %d, file %d, dropped %d, dual %d\n", fixed, anew, file, dropped, dual);
    return 0;
}
