/* Ends in the way that its argument names, with another thread running. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static const char *how;
static void *other(void *unused) {
    if (!strcmp(how, "thread-exit"))
        exit(21);
    if (!strcmp(how, "main-left")) {
        usleep(20000);
        exit(22);
    }
    for (;;)
        pause();
}

int main(int argc, char **argv) {
    how = argv[1];
    printf("begin\n");
    fflush(stdout);
    pthread_t t;
    pthread_create(&t, 0, other, 0);
    if (!strcmp(how, "return"))
        return 3;
    if (!strcmp(how, "exit"))
        exit(4);
    if (!strcmp(how, "_exit"))
        _exit(5);
    if (!strcmp(how, "_Exit"))
        _Exit(6);
    if (!strcmp(how, "quick_exit"))
        quick_exit(7);
    if (!strcmp(how, "syscall"))
        syscall(SYS_exit_group, 8);
    if (!strcmp(how, "abort"))
        abort();
    if (!strcmp(how, "execl"))
        execl("/bin/sh", "sh", "-c", "exit \"$1\"", "sh", "9", (char *)0);
    if (!strcmp(how, "execve-fails")) {
        char *args[] = {"x", 0};
        execve("/does/not/exist", args, args + 1);
        return 10;
    }
    if (!strcmp(how, "main-left"))
        pthread_exit(0);
    if (!strcmp(how, "vfork")) {
        if (vfork() == 0)
            _exit(0);
        return 11;
    }
    if (!strcmp(how, "fork")) {
        if (fork() == 0)
            exit(0);
        return 12;
    }
    for (;;)
        pause();
}
