/* Thread-local storage in every model: executable, pthread keys with destructors, large blocks, alignment.
 * Answer: every thread sees its own initial values; destructors run once per thread. */
//@ flags: -pthread -ftls-model=global-dynamic -fPIC
//@ stdout: 32 threads, destructors 32
//@ repeat: 5
#include "../check.h"
#include <pthread.h>

static __thread int small = 11;
static __thread char big[10000] = {1, 2, 3};
static __thread _Alignas(64) double aligned = 2.5;
static pthread_key_t key;
static int destroyed;
static void destroy(void *p) {
    CHECK(*(int *)p == 77);
    free(p);
    __atomic_add_fetch(&destroyed, 1, __ATOMIC_SEQ_CST);
}
static void *work(void *a) {
    CHECK(small == 11 && big[2] == 3 && big[9999] == 0 && aligned == 2.5 && (uintptr_t)&aligned % 64 == 0);
    int *p = malloc(sizeof *p);
    *p = 77;
    pthread_setspecific(key, p);
    small = 12, big[2] = 9, aligned = 0;
    errno = 3;
    usleep(100);
    CHECK(errno == 3 || errno == EINTR);
    return a;
}
int main(void) {
    pthread_t t[32];
    pthread_key_create(&key, destroy);
    for (int i = 0; i < 32; i++) CHECK(pthread_create(&t[i], 0, work, 0) == 0);
    for (int i = 0; i < 32; i++) pthread_join(t[i], 0);
    CHECK(small == 11);
    printf("32 threads, destructors %d\n", destroyed);
    return 0;
}
