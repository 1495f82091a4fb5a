/* Hand-made coroutines: rsp moved by assembly, no system call, stacks above and below each other.
 * Answer: 1,000,000 switches. */
//@ stdout: 1000000 499999500000
#include "../check.h"
#include <sys/mman.h>

void switch_to(void **save, void *to);
__asm__(".globl switch_to\nswitch_to:\n push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        " mov %rsp, (%rdi)\n mov %rsi, %rsp\n pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n");
static void *main_sp, *co_sp;
static long count, sum;
__attribute__((noinline)) static void level(int n) {
    if (n) {
        level(n - 1);
        return;
    }
    sum += count++;
    switch_to(&co_sp, main_sp);
}
static void body(void) {
    for (long i = 0;; i++) level(i % 5);
}
int main(void) {
    char *stack = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void **top = (void **)(stack + 65536 - 64);
    *--top = 0;
    *--top = (void *)body;
    for (int i = 0; i < 6; i++) *--top = 0;
    co_sp = top;
    for (int i = 0; i < 1000000; i++) switch_to(&main_sp, co_sp);
    printf("%ld %ld\n", count, sum);
    return 0;
}
