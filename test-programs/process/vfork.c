/* vfork: the child shares the parent's memory and stack until it execs or exits; the parent then goes on.
 * Answer: 50 times _exit with a value seen by the parent, 20 times exec of true and false. */
//@ stdout: exits 1225, shared 50, true 10, false 10
//@ repeat: 5
#include "../check.h"
#include <sys/wait.h>

static volatile int shared;
__attribute__((noinline)) static int child_exits(int i) {
    pid_t c = vfork();
    if (c == 0) {
        shared++;
        _exit(i);
    }
    CHECK(c > 0);
    int st;
    CHECK(waitpid(c, &st, 0) == c && WIFEXITED(st));
    return WEXITSTATUS(st);
}
__attribute__((noinline)) static int child_execs(const char *path) {
    pid_t c = vfork();
    if (c == 0) {
        execl(path, path, (char *)0);
        _exit(77);
    }
    CHECK(c > 0);
    int st;
    CHECK(waitpid(c, &st, 0) == c && WIFEXITED(st));
    return WEXITSTATUS(st);
}
int main(void) {
    int exits = 0, t = 0, f = 0;
    for (int i = 0; i < 50; i++) exits += child_exits(i);
    for (int i = 0; i < 10; i++) t += child_execs("/bin/true") == 0, f += child_execs("/bin/false") == 1;
    CHECK(child_execs("/no/such/program") == 77);
    printf("exits %d, shared %d, true %d, false %d\n", exits, shared, t, f);
    return 0;
}
