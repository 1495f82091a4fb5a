// One thread holds a lock for a planned CPU time, another waits for it.
#include "idle.h"
#include <pthread.h>
#include <stdatomic.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;

__attribute__((noinline)) uint64_t hold(double seconds) {
    pthread_mutex_lock(&lock);
    atomic_store(&held, 1);
    uint64_t x = burn(seconds);
    pthread_mutex_unlock(&lock);
    return x;
}

__attribute__((noinline)) void waits(void) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
}

static void *holder(void *unused) { return (void *)hold(0.2); }

int main(void) {
    pthread_t t;
    void *result;
    pthread_create(&t, 0, holder, 0);
    while (!atomic_load(&held)) {
    }
    waits();
    pthread_join(t, &result);
    printf("%d\n", result != 0);
}
