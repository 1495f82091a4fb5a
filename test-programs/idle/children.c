// Processes whose work and idleness are planned, each for itself. What is planned is CPU time, as everywhere here.
//   two              two forked children: one works alone and then in two threads, one works alone and then sleeps
//   thread           the child of a thread other than the first, with locks and threads of its own
//   killed           a child that kills itself
//   outlives         a child that goes on when its parent has ended
//   many N           N children that end at once
//   spawn PROGRAM    posix_spawn, and waits
//   exec PROGRAM     execv
//   bare PROGRAM     vfork, execve with an empty environment, and waits
#include "idle.h"
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

__attribute__((noinline)) uint64_t parents(double seconds) { return burn(seconds) + 1; }
__attribute__((noinline)) uint64_t alone(double seconds) { return burn(seconds) + 2; }
__attribute__((noinline)) uint64_t together(double seconds) { return burn(seconds) + 3; }
__attribute__((noinline)) uint64_t sleepers(double seconds) { return burn(seconds) + 4; }

static pthread_barrier_t barrier;

static void *helper(void *unused) {
    (void)unused;
    pthread_barrier_wait(&barrier);
    return (void *)together(0.3);
}

static uint64_t alone_then_together(void) {
    uint64_t x = alone(0.4);
    pthread_t t;
    void *result;
    pthread_barrier_init(&barrier, 0, 2);
    pthread_create(&t, 0, helper, 0);
    pthread_barrier_wait(&barrier);
    x += together(0.3);
    pthread_join(t, &result);
    return x + (uint64_t)result;
}

static void wait_for(pid_t pid, int expected) {
    int status;
    if (waitpid(pid, &status, 0) != pid || status != expected) {
        printf("child: status %x instead of %x\n", status, expected);
        exit(1);
    }
}

static void two(void) {
    uint64_t x = parents(0.2);
    pid_t a = fork();
    if (a == 0) _exit(alone_then_together() == 0);
    pid_t b = fork();
    if (b == 0) {
        x += sleepers(0.4);
        usleep(300000);
        exit(x == 0);
    }
    wait_for(a, 0);
    wait_for(b, 0);
}

static void *fork_here(void *unused) {
    pid_t pid = fork();
    if (pid == 0) _exit(alone_then_together() == 0);
    wait_for(pid, 0);
    return unused;
}

static void from_thread(void) {
    pthread_t t;
    pthread_create(&t, 0, fork_here, 0);
    parents(0.2);
    pthread_join(t, 0);
}

static void killed(void) {
    pid_t pid = fork();
    if (pid == 0) {
        alone(0.4);
        kill(getpid(), SIGKILL);
    }
    wait_for(pid, SIGKILL);
}

static void outlives(void) {
    int ends[2];
    char byte;
    pid_t parent = getpid();
    if (pipe(ends)) exit(1);
    if (fork() == 0) {
        alone(0.4);
        if (write(ends[1], "x", 1) != 1) exit(1);
        // Until the parent has ended, whoever inherits us.
        while (getppid() == parent) usleep(1000);
        together(0.3);
        printf("afterwards\n");
        exit(0);
    }
    if (read(ends[0], &byte, 1) != 1) exit(1);
}

static void many(int count) {
    for (int i = 0; i < count; i++) {
        pid_t pid = fork();
        if (pid == 0) _exit(i & 0x7f);
        wait_for(pid, (i & 0x7f) << 8);
    }
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "two";
    if (!strcmp(what, "two")) two();
    if (!strcmp(what, "thread")) from_thread();
    if (!strcmp(what, "killed")) killed();
    if (!strcmp(what, "outlives")) outlives();
    if (argc < 3) return puts("done") < 0;
    if (!strcmp(what, "many")) many(atoi(argv[2]));
    if (!strcmp(what, "spawn")) {
        pid_t pid;
        if (posix_spawn(&pid, argv[2], 0, 0, argv + 2, environ)) return 1;
        wait_for(pid, 0);
    }
    if (!strcmp(what, "exec")) {
        execv(argv[2], argv + 2);
        return 1;
    }
    if (!strcmp(what, "bare")) {
        char *none[] = {0};
        pid_t pid = vfork();
        if (pid == 0) {
            execve(argv[2], argv + 2, none);
            _exit(1);
        }
        wait_for(pid, 0);
    }
    return puts("done") < 0;
}
