/* The program itself dies by a division by zero: same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGFPE. */
//@ stdout: before
//@ signal: SIGFPE
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    volatile int zero = 0, r = 100 / zero; (void)r;
    puts("not reached");
    return 0;
}
