/* Every way to wait: wait4 with rusage, waitid, SIGCHLD with siginfo, stop and continue of a child.
 * Answer: below. */
//@ stdout: waitid code 1 status 4
//@ stdout: stopped by 19
//@ stdout: continued 1
//@ stdout: killed by 9
//@ stdout: SIGCHLD seen, code 1 status 6
//@ repeat: 3
#include "../check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile sig_atomic_t chld, chld_code, chld_status;
static void on_chld(int s, siginfo_t *i, void *u) {
    (void)s, (void)u;
    chld++, chld_code = i->si_code, chld_status = i->si_status;
}
int main(void) {
    pid_t c = fork();
    if (c == 0) _exit(4);
    siginfo_t si;
    CHECK(waitid(P_PID, c, &si, WEXITED) == 0 && si.si_pid == c);
    printf("waitid code %d status %d\n", si.si_code, si.si_status);
    fflush(stdout);
    c = fork();
    if (c == 0)
        for (;;) pause();
    int st;
    struct rusage ru;
    kill(c, SIGSTOP);
    CHECK(wait4(c, &st, WUNTRACED, &ru) == c && WIFSTOPPED(st));
    printf("stopped by %d\n", WSTOPSIG(st));
    kill(c, SIGCONT);
    CHECK(waitpid(c, &st, WCONTINUED) == c);
    printf("continued %d\n", WIFCONTINUED(st));
    kill(c, SIGKILL);
    CHECK(wait4(c, &st, 0, &ru) == c && WIFSIGNALED(st));
    printf("killed by %d\n", WTERMSIG(st));
    fflush(stdout);
    struct sigaction sa = {.sa_sigaction = on_chld, .sa_flags = SA_SIGINFO};
    sigaction(SIGCHLD, &sa, 0);
    sigset_t block, old;
    sigemptyset(&block);
    sigaddset(&block, SIGCHLD);
    sigprocmask(SIG_BLOCK, &block, &old);
    c = fork();
    if (c == 0) _exit(6);
    while (!chld) sigsuspend(&old);
    CHECK(waitpid(c, &st, 0) == c);
    printf("SIGCHLD seen, code %d status %d\n", (int)chld_code, (int)chld_status);
    return 0;
}
