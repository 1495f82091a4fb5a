/* exec replaces the program: arguments and environment arrive, memory and handlers do not, ignored signals
 * and the mask stay. The program execs itself four times, the last time through a #! script-less fexecve.
 * Answer: generations 0 to 4 with growing arguments. */
//@ stdout: generation 0: argc 1, blocked 0, ignored 0
//@ stdout: generation 1: argc 2, blocked 1, ignored 1
//@ stdout: generation 2: argc 3, blocked 1, ignored 1
//@ stdout: generation 3: argc 4, blocked 1, ignored 1
//@ stdout: generation 4: argc 5, blocked 1, ignored 1
//@ repeat: 3
#include "../check.h"
#include <fcntl.h>
#include <signal.h>

static void handler(int s) { (void)s; }
int main(int argc, char **argv) {
    sigset_t now, add;
    struct sigaction old;
    CHECK(sigprocmask(SIG_BLOCK, 0, &now) == 0);
    CHECK(sigaction(SIGHUP, 0, &old) == 0);
    const char *g = getenv("GENERATION");
    int generation = g ? atoi(g) : 0;
    struct sigaction usr2;
    CHECK(sigaction(SIGUSR2, 0, &usr2) == 0 && usr2.sa_handler == SIG_DFL);
    printf("generation %d: argc %d, blocked %d, ignored %d\n", generation, argc, sigismember(&now, SIGUSR1),
           old.sa_handler == SIG_IGN);
    fflush(stdout);
    if (generation == 4) return 0;
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR2, handler);
    sigemptyset(&add);
    sigaddset(&add, SIGUSR1);
    sigprocmask(SIG_BLOCK, &add, 0);
    char next[20], *args[10] = {argv[0]};
    for (int i = 1; i <= generation + 1; i++) args[i] = "x";
    snprintf(next, sizeof next, "%d", generation + 1);
    setenv("GENERATION", next, 1);
    extern char **environ;
    if (generation == 3) {
        int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        fexecve(fd, args, environ);
    }
    execve("/proc/self/exe", args, environ);
    CHECK(!"exec returned");
}
