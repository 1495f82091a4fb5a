/* 20,000 threads in a row: state of ended threads is reused, nothing leaks until it fails.
 * Answer: each added one. */
//@ flags: -pthread
//@ stdout: 20000
#include "../check.h"
#include <pthread.h>

static int count;
static void *one(void *a) {
    count++;
    return a;
}
int main(void) {
    for (long i = 0; i < 20000; i++) {
        pthread_t t;
        void *back;
        CHECK(pthread_create(&t, 0, one, (void *)i) == 0);
        CHECK(pthread_join(t, &back) == 0 && back == (void *)i);
    }
    printf("%d\n", count);
    return 0;
}
