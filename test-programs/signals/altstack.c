/* A handler on an alternate stack: runs there, sees SS_ONSTACK, may not change it, nests; per thread.
 * Answer: below. */
//@ flags: -pthread
//@ stdout: on 1, flags 1, change refused 1, nested on 1, after: flags 0
//@ stdout: thread: on 1, disabled before 1
//@ repeat: 5
#include "../check.h"
#include <pthread.h>
#include <signal.h>

static char *base;
static volatile int on, flags, refused, nested;
static int inside(void *p) { return (char *)p >= base && (char *)p < base + 65536; }
static void second(int s) {
    (void)s;
    int x;
    nested = inside(&x);
}
static void first(int s) {
    (void)s;
    int x;
    stack_t now, other = {.ss_sp = base, .ss_size = 65536};
    on = inside(&x);
    sigaltstack(0, &now);
    flags = now.ss_flags;
    refused = sigaltstack(&other, 0) == -1 && errno == EPERM;
    raise(SIGUSR2);
}
static void install(void) {
    base = malloc(65536);
    stack_t st = {.ss_sp = base, .ss_size = 65536}, old;
    CHECK(sigaltstack(&st, &old) == 0 && old.ss_flags == SS_DISABLE);
}
static void *thread(void *a) {
    stack_t now;
    sigaltstack(0, &now);
    int disabled = now.ss_flags == SS_DISABLE;
    install();
    raise(SIGUSR1);
    printf("thread: on %d, disabled before %d\n", on, disabled);
    return a;
}
int main(void) {
    install();
    struct sigaction sa = {.sa_handler = first, .sa_flags = SA_ONSTACK};
    sigaction(SIGUSR1, &sa, 0);
    sa.sa_handler = second;
    sigaction(SIGUSR2, &sa, 0);
    raise(SIGUSR1);
    stack_t now;
    sigaltstack(0, &now);
    printf("on %d, flags %d, change refused %d, nested on %d, after: flags %d\n", on, flags, refused, nested,
           now.ss_flags);
    fflush(stdout);
    pthread_t t;
    CHECK(pthread_create(&t, 0, thread, 0) == 0);
    pthread_join(t, 0);
    return 0;
}
