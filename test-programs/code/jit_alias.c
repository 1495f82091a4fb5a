/* Code written through a second mapping of the same memory, made before or after the code has run: a memory file mapped
 * twice, shared memory duplicated by mremap, an alias made writable by mprotect, and two pages of one alias.
 * Answer: the code that was written last runs, 100 rounds each. */
//@ stdout: before 100, after 100, duplicate 100, opened 100, second page 100
#define _GNU_SOURCE
#include "../check.h"
#include <sys/mman.h>

static void put(unsigned char *p, int v) {
    memcpy(p, "\xb8\0\0\0\0\xc3", 6);
    memcpy(p + 1, &v, 4);
}
static int call(void *p) { return ((int (*)(void))p)(); }
int main(void) {
    int before = 0, after = 0, duplicate = 0, opened = 0, second = 0;
    int fd = memfd_create("code", 0);
    CHECK(fd >= 0 && ftruncate(fd, 8192) == 0);
    unsigned char *w = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *x = mmap(0, 8192, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    unsigned char *s = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned char *d = mremap(s, 0, 4096, MREMAP_MAYMOVE);
    CHECK(w != MAP_FAILED && x != MAP_FAILED && s != MAP_FAILED && d != MAP_FAILED && d != s);
    for (int i = 0; i < 100; i++) {
        put(w, i);
        before += call(x) == i;
        put(w + 4096, i + 1);
        second += call(x + 4096) == i + 1 && call(x) == i;
        unsigned char *late = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        put(late, i + 2);
        after += call(x) == i + 2;
        CHECK(mprotect(late, 4096, PROT_READ) == 0 && call(x) == i + 2);
        CHECK(mprotect(late, 4096, PROT_READ | PROT_WRITE) == 0);
        put(late, i + 3);
        opened += call(x) == i + 3;
        munmap(late, 4096);
        put(s, i + 4);
        CHECK(call(d) == i + 4);
        put(d, i + 5);
        duplicate += call(s) == i + 5 && call(d) == i + 5;
    }
    printf("before %d, after %d, duplicate %d, opened %d, second page %d\n", before, after, duplicate, opened, second);
    return 0;
}
