/* sigsuspend, ppoll, pselect, epoll_pwait: the temporary mask holds while waiting and in the handler, the old
 * one is back afterwards; an already pending signal ends the wait at once.
 * Answer: below. */
//@ stdout: sigsuspend: hit 1, other blocked inside 1, restored 1
//@ stdout: ppoll: hit 1, other blocked inside 1, restored 1
//@ stdout: pselect: hit 1, other blocked inside 1, restored 1
//@ stdout: epoll_pwait: hit 1, other blocked inside 1, restored 1
//@ repeat: 5
#include "../check.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>

static volatile int hits, other_blocked;
static void on_usr1(int s) {
    (void)s;
    sigset_t m;
    sigprocmask(SIG_BLOCK, 0, &m);
    hits++;
    other_blocked = sigismember(&m, SIGUSR2);
}
int main(void) {
    struct sigaction sa = {.sa_handler = on_usr1};
    sigaction(SIGUSR1, &sa, 0);
    sigset_t block, temporary, now;
    sigemptyset(&block);
    sigaddset(&block, SIGUSR1);
    sigprocmask(SIG_BLOCK, &block, 0);
    sigemptyset(&temporary);
    sigaddset(&temporary, SIGUSR2); /* during the wait USR1 is open and USR2 closed */
    int ep = epoll_create1(0);
    const char *names[] = {"sigsuspend", "ppoll", "pselect", "epoll_pwait"};
    for (int i = 0; i < 4; i++) {
        struct epoll_event e;
        hits = other_blocked = 0;
        raise(SIGUSR1);
        CHECK(hits == 0);
        int r = -2;
        if (i == 0) r = sigsuspend(&temporary);
        if (i == 1) r = ppoll(0, 0, 0, &temporary);
        if (i == 2) r = pselect(0, 0, 0, 0, 0, &temporary);
        if (i == 3) r = epoll_pwait(ep, &e, 1, -1, &temporary);
        CHECK(r == -1 && errno == EINTR);
        sigprocmask(SIG_BLOCK, 0, &now);
        printf("%s: hit %d, other blocked inside %d, restored %d\n", names[i], hits, other_blocked,
               sigismember(&now, SIGUSR1) == 1 && sigismember(&now, SIGUSR2) == 0);
    }
    return 0;
}
