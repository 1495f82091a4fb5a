/* The program itself dies by a store through a wild pointer: same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGSEGV. */
//@ stdout: before
//@ signal: SIGSEGV
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    *(volatile int *)wild(16) = 1;
    puts("not reached");
    return 0;
}
