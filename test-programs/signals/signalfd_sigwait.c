/* Signals taken without handlers: signalfd, sigwait, sigwaitinfo with values, sigtimedwait; queued in order.
 * Answer: below. */
//@ flags: -pthread
//@ stdout: signalfd 10 from self 1
//@ stdout: sigwait 12
//@ stdout: rt 34:1 34:2 34:3 35:9
//@ stdout: timed out 1
//@ stdout: thread got 10
//@ repeat: 5
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>

static void *waits(void *a) {
    int s;
    CHECK(sigwait(a, &s) == 0);
    printf("thread got %d\n", s);
    return 0;
}
int main(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGUSR1), sigaddset(&set, SIGUSR2), sigaddset(&set, SIGRTMIN), sigaddset(&set, SIGRTMIN + 1);
    sigprocmask(SIG_BLOCK, &set, 0);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    int fd = signalfd(-1, &one, SFD_CLOEXEC);
    kill(getpid(), SIGUSR1);
    struct signalfd_siginfo si;
    CHECK(read(fd, &si, sizeof si) == sizeof si);
    printf("signalfd %u from self %d\n", si.ssi_signo, si.ssi_pid == (unsigned)getpid());
    int s;
    raise(SIGUSR2);
    CHECK(sigwait(&set, &s) == 0);
    printf("sigwait %d\n", s);
    printf("rt");
    sigqueue(getpid(), SIGRTMIN + 1, (union sigval){.sival_int = 9});
    for (int i = 1; i <= 3; i++) sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = i});
    for (int i = 0; i < 4; i++) {
        siginfo_t info;
        CHECK(sigwaitinfo(&set, &info) > 0);
        printf(" %d:%d", info.si_signo, info.si_value.sival_int);
    }
    struct timespec soon = {0, 1000000};
    printf("\ntimed out %d\n", sigtimedwait(&set, 0, &soon) == -1 && errno == EAGAIN);
    pthread_t t;
    CHECK(pthread_create(&t, 0, waits, &one) == 0);
    pthread_kill(t, SIGUSR1);
    pthread_join(t, 0);
    return 0;
}
