/* _exit: no atexit handlers, no flush of stdio; the status is the program's.
 * Answer: only what was flushed by hand, status 42. */
//@ stdout: flushed
//@ exit: 42
#include "../check.h"

static void never(void) { CHECK(!"atexit ran"); }
int main(void) {
    atexit(never);
    puts("flushed");
    fflush(stdout);
    printf("lost in the buffer");
    _exit(42);
}
