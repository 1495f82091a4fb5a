/* return from main while 16 threads are starting, running, blocked and ending.
 * Answer: status 5, nothing else. */
//@ flags: -pthread
//@ exit: 5
//@ stdout: main returns
//@ repeat: 30
#include "../check.h"
#include <pthread.h>

static void *work(void *a) {
    long n = (long)a;
    for (;;) {
        for (volatile long i = 0; i < 1000 * n; i++) {
        }
        if (n % 4 == 1) usleep(10);
        if (n % 4 == 2) return 0;
        if (n % 4 == 3) free(malloc(n * 100));
    }
}
int main(void) {
    for (long i = 0; i < 16; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, 0, work, (void *)i) == 0);
    }
    puts("main returns");
    return 5;
}
