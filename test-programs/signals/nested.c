/* Nested handlers: what sa_mask, SA_NODEFER and SA_RESETHAND say is what happens, the old mask comes back.
 * Answer: the order of entries and exits. */
//@ stdout: [1 [2 2] 1] plain nesting
//@ stdout: [1 1] [2 2] deferred by sa_mask
//@ stdout: [3 [3 [3 3] 3] 3] SA_NODEFER
//@ stdout: [4 4] then default
//@ stdout: mask inside 1, outside 0
//@ repeat: 3
#include "../check.h"
#include <signal.h>
#include <sys/wait.h>

static char log_[200];
static int depth3, inside;
static void say(const char *t) { strcat(log_, t); }
static void h2(int s) {
    (void)s;
    say("[2 "), say("2]");
}
static void h1(int s) {
    (void)s;
    say("[1 ");
    raise(SIGUSR2);
    say(log_[strlen(log_) - 1] == ']' ? " 1]" : "1]");
}
static void h3(int s) {
    (void)s;
    say(depth3 ? "[3 " : "[3 ");
    if (depth3++ < 2) {
        raise(SIGWINCH);
        say(" 3]");
    } else
        say("3]");
}
static void h4(int s) {
    (void)s;
    say("[4 4]");
}
static void h5(int s) {
    sigset_t m;
    sigprocmask(SIG_BLOCK, 0, &m);
    inside = sigismember(&m, s);
}
static void show(const char *what) {
    printf("%s %s\n", log_, what);
    log_[0] = 0;
}
int main(void) {
    struct sigaction sa = {.sa_handler = h1};
    sigaction(SIGUSR1, &sa, 0);
    sa.sa_handler = h2;
    sigaction(SIGUSR2, &sa, 0);
    raise(SIGUSR1);
    show("plain nesting");
    sa.sa_handler = h1;
    sigaddset(&sa.sa_mask, SIGUSR2);
    sigaction(SIGUSR1, &sa, 0);
    log_[0] = 0;
    raise(SIGUSR1);
    char *second = strstr(log_, "[2 ");
    CHECK(second);
    char first[20] = {0};
    memcpy(first, log_, second - log_);
    printf("%s %s deferred by sa_mask\n", first, second);
    log_[0] = 0;
    struct sigaction again = {.sa_handler = h3, .sa_flags = SA_NODEFER};
    sigaction(SIGWINCH, &again, 0);
    raise(SIGWINCH);
    show("SA_NODEFER");
    struct sigaction once = {.sa_handler = h4, .sa_flags = SA_RESETHAND}, now;
    sigaction(SIGURG, &once, 0);
    raise(SIGURG);
    raise(SIGURG); /* default: ignored */
    sigaction(SIGURG, 0, &now);
    CHECK(now.sa_handler == SIG_DFL);
    show("then default");
    struct sigaction mask = {.sa_handler = h5};
    sigaction(SIGHUP, &mask, 0);
    raise(SIGHUP);
    sigset_t m;
    sigprocmask(SIG_BLOCK, 0, &m);
    printf("mask inside %d, outside %d\n", inside, sigismember(&m, SIGHUP));
    return 0;
}
