/* The program itself dies by abort(): same signal to whoever waits, output up to there kept.
 * Answer: one line, killed by SIGABRT. */
//@ stdout: before
//@ signal: SIGABRT
#include "../check.h"
#include <signal.h>

int main(void) {
    puts("before");
    fflush(stdout);
    abort();
    puts("not reached");
    return 0;
}
