/* dlopen and dlclose in a loop, two libraries by turns, so that one is mapped where the other was: constructors,
 * TLS, lazy binding and answers are each time those of the library that is there now.
 * Answer: below; "reused" says that the addresses really coincided. */
//@ flags: -ldl
//@ lib: plugin_one.c
//@ lib: plugin_two.c
//@ args: {lib:plugin_one} {lib:plugin_two}
//@ stdout: ones 300, twos 300, reused 1
#include "../check.h"
#include <dlfcn.h>
int main(int argc, char **argv) {
    CHECK(argc == 3);
    int ones = 0, twos = 0, reused = 0;
    void *last = 0;
    for (int i = 0; i < 600; i++) {
        void *h = dlopen(argv[1 + i % 2], i % 3 ? RTLD_LAZY : RTLD_NOW);
        if (!h) fprintf(stderr, "%s\n", dlerror());
        CHECK(h);
        int (*f)(int) = (int (*)(int))dlsym(h, "answer");
        CHECK(f);
        int got = f(i);
        ones += got == i + 1001, twos += got == i + 2002;
        reused |= last && last == (void *)((uintptr_t)f & ~0xffful);
        last = (void *)((uintptr_t)f & ~0xffful);
        dlclose(h);
    }
    printf("ones %d, twos %d, reused %d\n", ones, twos, reused);
    return 0;
}
