/* A daemon's habit: close every descriptor from 3 up, twice, then go on working, fork and exec.
 * Nothing of ours may depend on a descriptor. Answer: below. */
//@ stdout: closed, child 0, file 1
#include "../check.h"
#include <fcntl.h>
#include <sys/wait.h>
int main(void) {
    for (int round = 0; round < 2; round++)
        for (int fd = 3; fd < 1024; fd++) close(fd);
    CHECK(close_range(3, ~0u, 0) == 0);
    int fd = open("/dev/null", O_RDONLY);
    CHECK(fd == 3);
    pid_t c = fork();
    if (c == 0) {
        execl("/bin/true", "true", (char *)0);
        _exit(1);
    }
    int st;
    waitpid(c, &st, 0);
    FILE *f = fopen("/proc/self/status", "r");
    printf("closed, child %d, file %d\n", WEXITSTATUS(st), f != 0);
    return 0;
}
