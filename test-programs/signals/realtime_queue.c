/* Real-time signals queue with their values, ordinary ones merge; delivered lowest number first.
 * Answer: below. */
//@ stdout: usr1 1, rt order 34/0 34/1 34/2 34/3 36/0 36/1
//@ stdout: pending seen 1
//@ repeat: 3
#include "../check.h"
#include <signal.h>

static char order[200];
static int usr1;
static void on_rt(int s, siginfo_t *i, void *u) {
    (void)u;
    char t[20];
    snprintf(t, sizeof t, " %d/%d", s, i->si_value.sival_int);
    strcat(order, t);
}
static void on_usr1(int s) {
    (void)s;
    usr1++;
}
int main(void) {
    sigset_t all, pending;
    sigfillset(&all);
    struct sigaction sa = {.sa_sigaction = on_rt, .sa_flags = SA_SIGINFO, .sa_mask = all};
    sigaction(SIGRTMIN, &sa, 0);
    sigaction(SIGRTMIN + 2, &sa, 0);
    signal(SIGUSR1, on_usr1);
    sigprocmask(SIG_BLOCK, &all, 0);
    for (int i = 0; i < 2; i++) sigqueue(getpid(), SIGRTMIN + 2, (union sigval){.sival_int = i});
    for (int i = 0; i < 4; i++) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    for (int i = 0; i < 5; i++) kill(getpid(), SIGUSR1);
    sigpending(&pending);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, 0);
    printf("usr1 %d, rt order%s\n", usr1, order);
    printf("pending seen %d\n", sigismember(&pending, SIGUSR1) && sigismember(&pending, SIGRTMIN) && !sigismember(&pending, SIGUSR2));
    return 0;
}
