// Code that the program has written itself, without unwind information: paths end in it, and nothing else happens.
#include "idle.h"
#include <string.h>
#include <sys/mman.h>

__attribute__((noinline)) uint64_t written(uint64_t (*code)(uint64_t)) { return code(400000000) + 1; }

int main(void) {
    // xor eax, eax; 1: inc rax; dec rdi; jnz 1b; ret
    static const unsigned char bytes[] = {0x31, 0xc0, 0x48, 0xff, 0xc0, 0x48, 0xff, 0xcf, 0x75, 0xf8, 0xc3};
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, bytes, sizeof bytes);
    mprotect(code, 4096, PROT_READ | PROT_EXEC);
    uint64_t x = written((uint64_t (*)(uint64_t))code);
    burn(0.1);
    printf("%lu\n", (unsigned long)x);
}
