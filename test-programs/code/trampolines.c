/* GCC nested functions: small pieces of code written onto an executable stack, reused at the same address with
 * other contents. Answer: 10,000 right results. */
//@ flags: -z execstack -Wno-trampolines
//@ stdout: right 10000
#include "../check.h"
__attribute__((noinline)) static int apply(int (*f)(int), int x) { return f(x); }
__attribute__((noinline)) static int with(int k) {
    int add(int x) { return x + k; }
    return apply(add, k * 2);
}
int main(void) {
    int right = 0;
    for (int i = 0; i < 10000; i++) right += with(i) == 3 * i;
    printf("right %d\n", right);
    return 0;
}
