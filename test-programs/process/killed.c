/* Death by a signal: the default action's status reaches the parent, for a raised and for a real fault.
 * Answer: the status word of every child, the core bit left out (it depends on the limits). */
//@ stdout: SIGSEGV by fault: 11
//@ stdout: SIGABRT: 6
//@ stdout: SIGKILL: 9
//@ stdout: SIGTERM: 15
//@ stdout: SIGFPE by fault: 8
//@ stdout: SIGILL by fault: 4
//@ stdout: SIGTRAP by int3: 5
//@ stdout: SIGBUS by fault: 7
//@ stdout: SIGSYS-free exit: 0
//@ stdout: SIGALRM: 14
//@ stdout: SIGPIPE: 13
//@ stdout: SIGRTMIN+3: 37
//@ stdout: SIGSEGV blocked, still kills: 11
//@ stdout: SIGSEGV ignored, still kills: 11
//@ repeat: 3
#include "../check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void fault(void) { *(volatile int *)wild(8) = 1; }
static void abort_(void) { abort(); }
static void kill_(void) { kill(getpid(), SIGKILL); }
static void term(void) { raise(SIGTERM); }
static void fpe(void) {
    volatile int zero = 0;
    volatile int r = 100 / zero;
    (void)r;
}
static void ill(void) { __asm__ volatile("ud2"); }
static void trap(void) { __asm__ volatile("int3"); }
static void bus(void) {
    char name[] = "/tmp/farsight-bus-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    volatile char *p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    (void)*p;
}
static void fine(void) {}
static void alarm_(void) {
    alarm(1);
    for (;;) pause();
}
static void broken_pipe(void) {
    int p[2];
    CHECK(pipe(p) == 0);
    close(p[0]);
    CHECK(write(p[1], "x", 1) == 1);
}
static void realtime(void) { raise(SIGRTMIN + 3); }
static void blocked(void) {
    sigset_t s;
    sigfillset(&s);
    sigprocmask(SIG_BLOCK, &s, 0);
    fault();
}
static void ignored(void) {
    signal(SIGSEGV, SIG_IGN);
    fault();
}
int main(void) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    struct {
        const char *name;
        void (*f)(void);
    } cases[] = {{"SIGSEGV by fault", fault}, {"SIGABRT", abort_},        {"SIGKILL", kill_},
                 {"SIGTERM", term},           {"SIGFPE by fault", fpe},   {"SIGILL by fault", ill},
                 {"SIGTRAP by int3", trap},   {"SIGBUS by fault", bus},   {"SIGSYS-free exit", fine},
                 {"SIGALRM", alarm_},         {"SIGPIPE", broken_pipe},   {"SIGRTMIN+3", realtime},
                 {"SIGSEGV blocked, still kills", blocked},               {"SIGSEGV ignored, still kills", ignored}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        fflush(stdout);
        pid_t c = fork();
        CHECK(c >= 0);
        if (c == 0) {
            cases[i].f();
            _exit(0);
        }
        int st;
        CHECK(waitpid(c, &st, 0) == c);
        printf("%s: %d\n", cases[i].name, st & ~0x80);
    }
    return 0;
}
