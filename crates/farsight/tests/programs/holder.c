// One thread holds a lock for a planned CPU time, another waits for it.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int held;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

__attribute__((noinline)) uint64_t hold(double seconds) {
    uint64_t x = 1;
    pthread_mutex_lock(&lock);
    atomic_store(&held, 1);
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 2000; i++) x = x * 6364136223846793005ull + 1;
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
