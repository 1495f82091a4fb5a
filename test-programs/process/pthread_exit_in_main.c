/* pthread_exit in main: the process lives on in the other threads, the last one's end ends it with status 0.
 * Answer: the line of the last thread, status 0. */
//@ flags: -pthread
//@ stdout: last one out
//@ repeat: 20
#include "../check.h"
#include <pthread.h>

static pthread_t main_thread;
static void *last(void *a) {
    (void)a;
    CHECK(pthread_join(main_thread, 0) == 0);
    usleep(1000);
    puts("last one out");
    return 0;
}
int main(void) {
    pthread_t t;
    main_thread = pthread_self();
    CHECK(pthread_create(&t, 0, last, 0) == 0);
    pthread_exit(0);
}
