/* fork: the child has the parent's memory, runs on, and reports through a pipe; grandchildren too.
 * Answer: the sum over a tree of 3 generations, and every status as given. */
//@ stdout: child 0 says 100 and ends 10
//@ stdout: child 1 says 101 and ends 11
//@ stdout: child 2 says 102 and ends 12
//@ stdout: parent still has 7
//@ repeat: 5
#include "../check.h"
#include <sys/wait.h>

int main(void) {
    volatile int mine = 7;
    for (int i = 0; i < 3; i++) {
        int p[2];
        CHECK(pipe(p) == 0);
        pid_t c = fork();
        CHECK(c >= 0);
        if (c == 0) {
            mine = 100 + i;
            pid_t g = fork();
            if (g == 0) {
                int v = mine;
                CHECK(write(p[1], &v, sizeof v) == sizeof v);
                exit(3);
            }
            int st;
            CHECK(waitpid(g, &st, 0) == g && WIFEXITED(st) && WEXITSTATUS(st) == 3);
            exit(10 + i);
        }
        int v = 0, st;
        CHECK(read(p[0], &v, sizeof v) == sizeof v);
        CHECK(waitpid(c, &st, 0) == c && WIFEXITED(st));
        printf("child %d says %d and ends %d\n", i, v, WEXITSTATUS(st));
        close(p[0]);
        close(p[1]);
        fflush(stdout);
    }
    printf("parent still has %d\n", mine);
    return 0;
}
