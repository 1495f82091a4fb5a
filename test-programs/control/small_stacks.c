/* Code that runs with almost no stack: a tiny stack just above an inaccessible page, with leaf code in its red zone
 * and calls that fit exactly. Nothing but the program may use it.
 * Answer: 45, and the bytes below the red zone untouched. */
//@ stdout: 45, untouched 1
#include "../check.h"
#include <sys/mman.h>

long on_small_stack(void *top);
__asm__(".globl on_small_stack\non_small_stack:\n push %rbx\n mov %rsp, %rbx\n mov %rdi, %rsp\n"
        " xor %eax, %eax\n mov $9, %ecx\n"
        "1: call leaf\n dec %ecx\n jnz 1b\n"
        " mov %rbx, %rsp\n pop %rbx\n ret\n"
        "leaf: mov %rcx, -8(%rsp)\n mov %rcx, -128(%rsp)\n add -8(%rsp), %rax\n ret\n");
int main(void) {
    char *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(p, 4096, PROT_NONE);
    memset(p + 4096, 0x5a, 4096);
    long a = on_small_stack(p + 4096 + 8 + 128);
    CHECK(a == 45);
    memset(p + 4096, 0x5a, 4096);
    long b = 0;
    for (int i = 0; i < 100; i++) b = on_small_stack(p + 4096 + 2048);
    int untouched = 1;
    for (int i = 0; i < 2048 - 8 - 128; i++) untouched &= p[4096 + i] == 0x5a;
    printf("%ld, untouched %d\n", b, untouched);
    return 0;
}
