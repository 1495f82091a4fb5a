/* Detached threads end by themselves while others are made: stacks are unmapped and reused by the kernel.
 * Answer: 2000 ended. */
//@ flags: -pthread
//@ stdout: 2000
//@ repeat: 3
#include "../check.h"
#include <pthread.h>
#include <semaphore.h>

static sem_t ended;
static void *one(void *a) {
    char stack[20000];
    memset(stack, (int)(long)a, sizeof stack);
    __asm__ volatile("" ::"r"(stack) : "memory");
    sem_post(&ended);
    return 0;
}
int main(void) {
    sem_init(&ended, 0, 0);
    for (long i = 0; i < 2000; i++) {
        pthread_t t;
        CHECK(pthread_create(&t, 0, one, (void *)i) == 0 && pthread_detach(t) == 0);
        if (i % 8 == 7)
            for (int k = 0; k < 8; k++) sem_wait(&ended);
    }
    puts("2000");
    return 0;
}
