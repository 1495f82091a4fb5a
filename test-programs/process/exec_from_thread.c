/* exec from a thread that is not the main one, while others run: the kernel ends them, the pid stays.
 * Answer: one line from the new image, whose pid equals the old one. */
//@ flags: -pthread
//@ stdout: same pid 1, one thread 1
//@ repeat: 10
#include "../check.h"
#include <dirent.h>
#include <pthread.h>

static void *spin(void *a) {
    for (volatile unsigned long i = 0;; i++) {
    }
    return a;
}
static void *leave(void *a) {
    char pid[30];
    snprintf(pid, sizeof pid, "%d", getpid());
    execl("/proc/self/exe", (const char *)a, pid, (char *)0);
    CHECK(!"exec returned");
    return 0;
}
int main(int argc, char **argv) {
    if (argc == 2) {
        int n = 0;
        DIR *d = opendir("/proc/self/task");
        for (struct dirent *e; (e = readdir(d));) n += e->d_name[0] != '.';
        printf("same pid %d, one thread %d\n", atoi(argv[1]) == getpid(), n == 1);
        return 0;
    }
    pthread_t t;
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&t, 0, spin, 0) == 0);
    CHECK(pthread_create(&t, 0, leave, argv[0]) == 0);
    for (;;) pause();
}
