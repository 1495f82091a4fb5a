// Cancellation and pthread_exit unwind through the wrappers; destructors and cleanup handlers must run.
#include <cstdio>
#include <initializer_list>
#include <pthread.h>
#include <semaphore.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static sem_t never;
static int pipes[2];

struct Guard {
    const char *name;
    ~Guard() { printf("%s unwound\n", name); }
};
static void unlock(void *m) { pthread_mutex_unlock((pthread_mutex_t *)m); }

static void *in_condition(void *) {
    Guard guard{"condition"};
    pthread_mutex_lock(&mutex);
    pthread_cleanup_push(unlock, &mutex);
    for (;;)
        pthread_cond_wait(&condition, &mutex);
    pthread_cleanup_pop(0);
    return nullptr;
}
static void *in_semaphore(void *) {
    Guard guard{"semaphore"};
    for (;;)
        sem_wait(&never);
}
static void *in_read(void *) {
    Guard guard{"read"};
    char c;
    for (;;)
        read(pipes[0], &c, 1);
}
static void *in_sleep(void *) {
    Guard guard{"sleep"};
    for (;;)
        sleep(1000);
}
static void *pending(void *) {
    // Cancelled before it asks for a semaphore that is free: sem_wait must act on it all the same.
    Guard guard{"pending"};
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, nullptr);
    pthread_cancel(pthread_self());
    sem_t free;
    sem_init(&free, 0, 1);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, nullptr);
    sem_wait(&free);
    printf("sem_wait ignored a pending cancellation\n");
    return nullptr;
}
static void *exits(void *) {
    Guard guard{"exit"};
    pthread_exit((void *)3);
}

int main() {
    setvbuf(stdout, nullptr, _IONBF, 0);
    sem_init(&never, 0, 0);
    pipe(pipes);
    for (auto *start : {in_condition, in_semaphore, in_read, in_sleep}) {
        pthread_t t;
        void *result;
        pthread_create(&t, nullptr, start, nullptr);
        usleep(20000);
        pthread_cancel(t);
        pthread_join(t, &result);
        printf("%s\n", result == PTHREAD_CANCELED ? "cancelled" : "?");
    }
    for (auto *start : {pending, exits}) {
        pthread_t t;
        void *result;
        pthread_create(&t, nullptr, start, nullptr);
        pthread_join(t, &result);
        printf("%ld\n", (long)result);
    }
    printf("mutex is %s\n", pthread_mutex_trylock(&mutex) == 0 ? "free" : "stuck");
}
