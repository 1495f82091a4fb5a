/* The program itself dies by int3 without a debugger: same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGTRAP. */
//@ stdout: before
//@ signal: SIGTRAP
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    __asm__ volatile("int3");
    puts("not reached");
    return 0;
}
