/* Threads that are cancelled at any moment, also while they are sampled. Prints how many were. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static void *sleeper(void *a) {
    for (;;)
        usleep(1);
}

int main() {
    int cancelled = 0;
    for (int round = 0; round < 3000; round++) {
        pthread_t t;
        void *r;
        pthread_create(&t, 0, sleeper, 0);
        usleep(round % 100);
        pthread_cancel(t);
        pthread_join(t, &r);
        cancelled += r == PTHREAD_CANCELED;
    }
    printf("%d\n", cancelled);
}
