/* Signals in blocking system calls: EINTR without SA_RESTART, restarted with it, always EINTR for some.
 * Answer: below. */
//@ flags: -pthread
//@ stdout: read EINTR 1, read restarted 1, nanosleep EINTR 1 with rest 1, poll EINTR 1
//@ stdout: futex wait survives 1, accept EINTR 1, wait restarted 1
//@ repeat: 5
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>

static int p[2];
static volatile int alarms, feed;
static void on_alarm(int s) {
    (void)s;
    alarms++;
    if (feed && alarms == 3) CHECK(write(p[1], "x", 1) == 1);
}
static void timer(int flags, int us) {
    struct sigaction sa = {.sa_handler = on_alarm, .sa_flags = flags};
    sigaction(SIGALRM, &sa, 0);
    struct itimerval it = {{0, us}, {0, us}};
    alarms = 0;
    setitimer(ITIMER_REAL, &it, 0);
}
static void off(void) {
    struct itimerval it = {{0, 0}, {0, 0}};
    setitimer(ITIMER_REAL, &it, 0);
}
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *unlocker(void *a) {
    usleep(60000);
    pthread_mutex_unlock(&lock);
    return a;
}
int main(void) {
    CHECK(pipe(p) == 0);
    char c;
    timer(0, 10000);
    int read_eintr = read(p[0], &c, 1) == -1 && errno == EINTR;
    off();
    feed = 1;
    timer(SA_RESTART, 10000);
    int read_restart = read(p[0], &c, 1) == 1 && c == 'x' && alarms >= 3;
    off();
    feed = 0;
    timer(SA_RESTART, 20000);
    struct timespec want = {10, 0}, rest = {0, 0};
    int sleep_eintr = nanosleep(&want, &rest) == -1 && errno == EINTR;
    off();
    int rest_ok = rest.tv_sec >= 5 && rest.tv_sec < 10;
    timer(SA_RESTART, 20000);
    struct pollfd pf = {.fd = p[0], .events = POLLIN};
    int poll_eintr = poll(&pf, 1, 10000) == -1 && errno == EINTR;
    off();
    printf("read EINTR %d, read restarted %d, nanosleep EINTR %d with rest %d, poll EINTR %d\n", read_eintr, read_restart,
           sleep_eintr, rest_ok, poll_eintr);
    pthread_t t;
    pthread_mutex_lock(&lock);
    sigset_t set, old;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, &old);
    CHECK(pthread_create(&t, 0, unlocker, 0) == 0);
    pthread_sigmask(SIG_SETMASK, &old, 0);
    timer(0, 5000);
    int futex = pthread_mutex_lock(&lock) == 0 && alarms >= 1;
    off();
    pthread_join(t, 0);
    int sock = socket(AF_UNIX, SOCK_STREAM, 0);
    struct sockaddr me = {.sa_family = AF_UNIX};
    CHECK(bind(sock, &me, sizeof(sa_family_t)) == 0 && listen(sock, 1) == 0);
    timer(0, 10000);
    int accept_eintr = accept(sock, 0, 0) == -1 && errno == EINTR;
    off();
    pid_t child = fork();
    if (child == 0) {
        usleep(60000);
        _exit(0);
    }
    timer(SA_RESTART, 5000);
    int wait_restart = waitpid(child, 0, 0) == child && alarms >= 1;
    off();
    printf("futex wait survives %d, accept EINTR %d, wait restarted %d\n", futex, accept_eintr, wait_restart);
    return 0;
}
