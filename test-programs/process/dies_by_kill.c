/* The program itself dies by SIGKILL to itself: same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGKILL. */
//@ stdout: before
//@ signal: SIGKILL
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    kill(getpid(), SIGKILL);
    puts("not reached");
    return 0;
}
