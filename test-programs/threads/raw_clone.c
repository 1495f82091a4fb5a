/* clone without libc's help: CLONE_VM without CLONE_THREAD, a thread whose tid is cleared by the kernel, and
 * clone3 with a stack and a pidfd. Answer: below. */
//@ stdout: shares memory: 5, status 9
//@ stdout: clone3 child status 13, pidfd 1
//@ repeat: 5
#include "../check.h"
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static volatile int shared;
static int child(void *a) {
    shared = *(int *)a;
    return 9;
}
int main(void) {
    int five = 5, st;
    char *stack = mmap(0, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pid_t c = clone(child, stack + 65536, CLONE_VM | CLONE_FS | SIGCHLD, &five);
    CHECK(c > 0 && waitpid(c, &st, 0) == c && WIFEXITED(st));
    printf("shares memory: %d, status %d\n", shared, WEXITSTATUS(st));
    fflush(stdout);
    int pidfd = -1;
    struct clone_args args = {.flags = CLONE_PIDFD, .pidfd = (uintptr_t)&pidfd, .exit_signal = SIGCHLD};
    c = syscall(SYS_clone3, &args, sizeof args);
    CHECK(c >= 0);
    if (c == 0) _exit(13);
    struct pollfd p = {.fd = pidfd, .events = POLLIN};
    CHECK(poll(&p, 1, 5000) == 1);
    CHECK(waitpid(c, &st, 0) == c);
    printf("clone3 child status %d, pidfd %d\n", WEXITSTATUS(st), pidfd >= 0);
    return 0;
}
