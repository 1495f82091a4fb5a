/* Code that runs before main: preinit_array, constructors by priority, an ifunc resolver, and destructors after.
 * A thread is started and a signal handled before main begins.
 * Answer: the order below. */
//@ flags: -pthread -no-pie
//@ stdout: preinit
//@ stdout: constructor 101
//@ stdout: constructor 202: thread 1 signal 1
//@ stdout: constructor
//@ stdout: main: ifunc gives 42
//@ stdout: destructor
#include "../check.h"
#include <pthread.h>
#include <signal.h>

static void say(const char *t) { CHECK(write(1, t, strlen(t)) == (ssize_t)strlen(t)); }
static void preinit(int c, char **v, char **e) {
    (void)c, (void)v, (void)e;
    say("preinit\n");
}
__attribute__((section(".preinit_array"), used)) static void (*const pre)(int, char **, char **) = preinit;
static volatile int threads, signals;
static void on_usr1(int s) {
    (void)s;
    signals++;
}
static void *thread(void *a) {
    threads++;
    return a;
}
__attribute__((constructor(101))) static void c101(void) { say("constructor 101\n"); }
__attribute__((constructor(202))) static void c202(void) {
    pthread_t t;
    signal(SIGUSR1, on_usr1);
    raise(SIGUSR1);
    CHECK(pthread_create(&t, 0, thread, 0) == 0);
    pthread_join(t, 0);
    char text[100];
    snprintf(text, sizeof text, "constructor 202: thread %d signal %d\n", threads, signals);
    say(text);
}
__attribute__((constructor)) static void c(void) { say("constructor\n"); }
__attribute__((destructor)) static void d(void) { say("destructor\n"); }
static int forty_two(void) { return 42; }
static int (*resolve(void))(void) { return forty_two; }
int answer(void) __attribute__((ifunc("resolve")));
int main(void) {
    char text[100];
    snprintf(text, sizeof text, "main: ifunc gives %d\n", answer());
    say(text);
    return 0;
}
