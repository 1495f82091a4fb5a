/* A thread that ends while it holds a robust mutex: the kernel walks its robust list, the next one gets EOWNERDEAD.
 * Answer: 20 times. */
//@ flags: -pthread
//@ stdout: owner dead 20
//@ repeat: 5
#include "../check.h"
#include <pthread.h>

static pthread_mutex_t m;
static void *dies(void *a) {
    pthread_mutex_lock(&m);
    return a;
}
int main(void) {
    int n = 0;
    for (int i = 0; i < 20; i++) {
        pthread_mutexattr_t attr;
        pthread_mutexattr_init(&attr);
        pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
        pthread_mutex_init(&m, &attr);
        pthread_t t;
        CHECK(pthread_create(&t, 0, dies, 0) == 0);
        pthread_join(t, 0);
        n += pthread_mutex_lock(&m) == EOWNERDEAD;
        pthread_mutex_consistent(&m);
        pthread_mutex_unlock(&m);
        pthread_mutex_destroy(&m);
    }
    printf("owner dead %d\n", n);
    return 0;
}
