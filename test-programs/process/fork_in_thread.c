/* fork from a thread that is not the main one: the child's only thread is the caller; it may make threads itself.
 * Answer: each of 4 threads gets 21 from its child. */
//@ flags: -pthread
//@ stdout: 21 21 21 21
//@ repeat: 5
#include "../check.h"
#include <pthread.h>
#include <sys/wait.h>

static void *inner(void *a) {
    *(int *)a = 21;
    return 0;
}
static void *outer(void *a) {
    pid_t c = fork();
    CHECK(c >= 0);
    if (c == 0) {
        int v = 0;
        pthread_t t;
        CHECK(pthread_create(&t, 0, inner, &v) == 0);
        pthread_join(t, 0);
        _exit(v);
    }
    int st;
    CHECK(waitpid(c, &st, 0) == c && WIFEXITED(st));
    *(int *)a = WEXITSTATUS(st);
    return 0;
}
int main(void) {
    pthread_t t[4];
    int v[4] = {0};
    for (int i = 0; i < 4; i++) CHECK(pthread_create(&t[i], 0, outer, &v[i]) == 0);
    for (int i = 0; i < 4; i++) pthread_join(t[i], 0);
    printf("%d %d %d %d\n", v[0], v[1], v[2], v[3]);
    return 0;
}
