/* A failing exec must leave everything as it was: memory, handlers, threads, signals.
 * Answer: the errno of each failure, and a program that still works afterwards. */
//@ flags: -pthread
//@ stdout: 2 13 8 14 20
//@ stdout: still alive: handler 1 thread 1
//@ repeat: 3
#include "../check.h"
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>

static volatile int hits, stop, ran;
static void on_usr1(int s) {
    (void)s;
    hits++;
}
static void *wait_for_stop(void *a) {
    (void)a;
    while (!stop) usleep(1000);
    ran = 1;
    return 0;
}
static int try_exec(const char *path) {
    char *args[] = {"x", 0};
    errno = 0;
    execv(path, args);
    return errno;
}
int main(void) {
    signal(SIGUSR1, on_usr1);
    pthread_t t;
    CHECK(pthread_create(&t, 0, wait_for_stop, 0) == 0);
    char name[] = "/tmp/farsight-exec-XXXXXX";
    int fd = mkstemp(name);
    CHECK(fd >= 0 && write(fd, "garbage\n", 8) == 8);
    fchmod(fd, 0700);
    close(fd);
    int not_found = try_exec("/no/such/program"), directory = try_exec("/tmp"), format = try_exec(name);
    int fault = try_exec((const char *)8), not_dir = try_exec("/bin/true/x");
    unlink(name);
    printf("%d %d %d %d %d\n", not_found, directory, format, fault, not_dir);
    raise(SIGUSR1);
    stop = 1;
    pthread_join(t, 0);
    printf("still alive: handler %d thread %d\n", hits, ran);
    return 0;
}
