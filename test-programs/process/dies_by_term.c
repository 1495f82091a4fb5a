/* The program itself dies by raise(SIGTERM): same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGTERM. */
//@ stdout: before
//@ signal: SIGTERM
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    raise(SIGTERM);
    puts("not reached");
    return 0;
}
