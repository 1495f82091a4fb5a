/* posix_spawn (CLONE_VM|CLONE_VFORK on a stack of its own, handlers reset in the child), popen and system.
 * Answer: the children's own output, in order, and their statuses; a missing program is ENOENT. */
//@ stdout: spawned
//@ stdout: status 0
//@ stdout: popen read: through a pipe
//@ stdout: system 5
//@ stdout: missing 2
//@ stdout: handler still ours: 1
//@ repeat: 5
#include "../check.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;
static volatile int hits;
static void on_usr1(int s) {
    (void)s;
    hits++;
}
int main(void) {
    signal(SIGUSR1, on_usr1);
    setvbuf(stdout, 0, _IONBF, 0);
    pid_t c;
    char *echo[] = {"sh", "-c", "echo spawned", 0};
    CHECK(posix_spawn(&c, "/bin/sh", 0, 0, echo, environ) == 0);
    int st;
    CHECK(waitpid(c, &st, 0) == c);
    printf("status %d\n", st);
    FILE *p = popen("echo through a pipe", "r");
    char line[100];
    CHECK(p && fgets(line, sizeof line, p));
    printf("popen read: %s", line);
    CHECK(pclose(p) == 0);
    printf("system %d\n", WEXITSTATUS(system("exit 5")));
    char *none[] = {"none", 0};
    printf("missing %d\n", posix_spawn(&c, "/no/such/program", 0, 0, none, environ));
    raise(SIGUSR1);
    printf("handler still ours: %d\n", hits);
    return 0;
}
