// Two libraries, one after the other in the same place: samples of the first are not taken for the second's. Built as
// a library with -DNAME=..., as the program without; its arguments are the libraries.
#ifdef NAME
#include "idle.h"
#define JOIN(a, b) a##b
#define CALLED(name) JOIN(work_of_, name)
__attribute__((noinline)) uint64_t CALLED(NAME)(void) { return burn(0.2) + 1; }
uint64_t work(void) { return CALLED(NAME)() + 1; }
#else
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

int main(int argc, char **argv) {
    for (int i = 1; i < argc; i++) {
        void *library = dlopen(argv[i], RTLD_NOW);
        if (!library) return fprintf(stderr, "%s\n", dlerror()), 1;
        uint64_t (*work)(void) = (uint64_t (*)(void))dlsym(library, "work");
        printf("%d\n", work() != 0);
        dlclose(library);
    }
}
#endif
