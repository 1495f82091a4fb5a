// An alternate signal stack with little room beside the kernel's frame, and a page below it that must not be touched.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(void) {
    size_t size = getauxval(AT_MINSIGSTKSZ) + 2048;
    char *memory = mmap(0, size + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, 4096, PROT_NONE);
    stack_t stack = {.ss_sp = memory + 4096, .ss_size = size};
    if (sigaltstack(&stack, 0)) return 1;
    // Code of libc's, whose unwind tables are not the simplest.
    static int numbers[20000];
    static char text[1 << 20];
    unsigned random = 1;
    long sum = 0;
    for (int round = 0; round < 60; round++) {
        for (int i = 0; i < 20000; i++) numbers[i] = (random = random * 1103515245 + 12345) >> 8;
        qsort(numbers, 20000, sizeof *numbers, compare);
        int at = 0;
        for (int i = 0; i < 20000; i += 10) at += snprintf(text + at, sizeof text - at, "%d %g;", numbers[i], i / 3.0);
        sum += at;
        free(malloc(numbers[0] % 5000));
    }
    printf("%ld\n", sum);
}
