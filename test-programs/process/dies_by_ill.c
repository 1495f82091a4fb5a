/* The program itself dies by ud2: same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGILL. */
//@ stdout: before
//@ signal: SIGILL
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    __asm__ volatile("ud2");
    puts("not reached");
    return 0;
}
