/* backtrace() walks the stack by unwind tables: the return addresses on the stack are the program's own.
 * Answer: six frames named, from the innermost. */
//@ flags: -O1 -rdynamic -fno-optimize-sibling-calls -no-pie
//@ stdout: fifth
//@ stdout: fourth
//@ stdout: third
//@ stdout: second
//@ stdout: first
//@ stdout: main
//@ stdout: return address of fifth in fourth: 1
#include "../check.h"
#include <dlfcn.h>
#include <execinfo.h>

#define LEVEL(name, next) \
    __attribute__((noinline)) void name(void) { \
        next; \
        __asm__ volatile(""); \
    }
static int in_fourth;
void fourth(void);
__attribute__((noinline)) void fifth(void) {
    void *pc[20];
    int n = backtrace(pc, 20);
    for (int i = 0; i < n; i++) {
        Dl_info d;
        if (!dladdr((char *)pc[i] - 1, &d) || !d.dli_sname) break;
        puts(d.dli_sname);
        if (!strcmp(d.dli_sname, "main")) break;
    }
    Dl_info d;
    in_fourth = dladdr((char *)__builtin_return_address(0) - 1, &d) && d.dli_saddr == (void *)fourth;
}
LEVEL(fourth, fifth())
LEVEL(third, fourth())
LEVEL(second, third())
LEVEL(first, second())
int main(void) {
    first();
    printf("return address of fifth in fourth: %d\n", in_fourth);
    return 0;
}
