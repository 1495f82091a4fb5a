/* All 64 signals: which dispositions can be set, which default actions ignore, kill(0) checks, SIGKILL refused.
 * Answer: below. */
//@ stdout: settable 60, refused 4, ignored by default survived
//@ stdout: all delivered 60
#include "../check.h"
#include <signal.h>

static volatile int delivered;
static void on_any(int s) {
    (void)s;
    delivered++;
}
int main(void) {
    int set = 0, refused = 0;
    for (int s = 1; s <= 64; s++) {
        struct sigaction sa = {.sa_handler = on_any};
        if (sigaction(s, &sa, 0) == 0)
            set++;
        else
            refused++;
    }
    for (int s = 1; s <= 64; s++) signal(s, SIG_DFL);
    raise(SIGCHLD), raise(SIGURG), raise(SIGWINCH), raise(SIGCONT);
    printf("settable %d, refused %d, ignored by default survived\n", set, refused);
    for (int s = 1; s <= 64; s++) {
        struct sigaction sa = {.sa_handler = on_any};
        if (sigaction(s, &sa, 0) == 0) kill(getpid(), s);
    }
    printf("all delivered %d\n", delivered);
    return 0;
}
