// Two locks, four functions that hold them for planned CPU times, and one thread that waits for each. It prints for how
// long each function held a lock while it was waited for: NAME SECONDS. Arguments: rounds, unit of the hold times
// (seconds).
#include "idle.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

static pthread_mutex_t locks[2] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER};
static atomic_int turn;
static _Atomic double released;
static double unit;
static int rounds;

static inline __attribute__((always_inline)) void hold(int which, double seconds) {
    pthread_mutex_lock(&locks[which]);
    atomic_fetch_add(&turn, 1);
    burn(seconds);
    atomic_store(&released, clock_of(CLOCK_MONOTONIC));
    pthread_mutex_unlock(&locks[which]);
    while (atomic_load(&turn) & 1) sched_yield();
}

__attribute__((noinline)) void hold_1(void) { hold(0, 1 * unit); }
__attribute__((noinline)) void hold_2(void) { hold(0, 2 * unit); }
__attribute__((noinline)) void hold_4(void) { hold(1, 4 * unit); }
__attribute__((noinline)) void hold_8(void) { hold(1, 8 * unit); }

static void *holder(void *unused) {
    for (int i = 0; i < rounds; i++) hold_1(), hold_4(), hold_2(), hold_8();
    return unused;
}

int main(int argc, char **argv) {
    rounds = ARGUMENT(1, 10), unit = ARGUMENT(2, 0.004);
    static const char *names[] = {"hold_1", "hold_4", "hold_2", "hold_8"};
    double waited[4] = {0};
    pthread_t t;
    pthread_create(&t, 0, holder, 0);
    for (int i = 0; i < 4 * rounds; i++) {
        while (!(atomic_load(&turn) & 1)) sched_yield();
        double since = clock_of(CLOCK_MONOTONIC);
        pthread_mutex_lock(&locks[i & 1]);
        if (atomic_load(&released) > since) waited[i & 3] += atomic_load(&released) - since;
        pthread_mutex_unlock(&locks[i & 1]);
        atomic_fetch_add(&turn, 1);
    }
    pthread_join(t, 0);
    for (int i = 0; i < 4; i++) printf("%s %.6f\n", names[i], waited[i]);
}
