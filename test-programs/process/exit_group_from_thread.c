/* exit from a thread that is not the main one, with 6 others running or blocked: one status, one flush.
 * Answer: status 7 and the buffered line once. */
//@ flags: -pthread
//@ stdout: leaving
//@ exit: 7
//@ repeat: 20
#include "../check.h"
#include <pthread.h>

static void *spin(void *a) {
    for (volatile unsigned long i = 0;; i++) {
    }
    return a;
}
static void *sleeper(void *a) {
    for (;;) pause();
    return a;
}
static void *leave(void *a) {
    (void)a;
    printf("leaving\n");
    exit(7);
}
int main(void) {
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        CHECK(pthread_create(&t, 0, spin, 0) == 0);
        CHECK(pthread_create(&t, 0, sleeper, 0) == 0);
    }
    CHECK(pthread_create(&t, 0, leave, 0) == 0);
    for (;;) pause();
}
