/* Every kind of lock and wait, first without and then with contention. Prints what each call returned. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static pthread_spinlock_t spin;
static pthread_barrier_t barrier;
static sem_t semaphore;
static mtx_t c11_mutex;
static cnd_t c11_condition;
static int flag;
static int event;

static struct timespec soon(clockid_t clock) {
    struct timespec t;
    clock_gettime(clock, &t);
    t.tv_nsec += 2000000;
    if (t.tv_nsec >= 1000000000)
        t.tv_sec++, t.tv_nsec -= 1000000000;
    return t;
}

#define SAY(call) printf(#call " = %d\n", call)

static void free_locks(void) {
    struct timespec far = soon(CLOCK_REALTIME);
    far.tv_sec += 100;
    struct timespec mono = soon(CLOCK_MONOTONIC);
    mono.tv_sec += 100;
    SAY(pthread_mutex_lock(&mutex));
    SAY(pthread_mutex_trylock(&mutex));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_timedlock(&mutex, &far));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_mutex_clocklock(&mutex, CLOCK_MONOTONIC, &mono));
    SAY(pthread_mutex_unlock(&mutex));
    SAY(pthread_rwlock_rdlock(&rwlock));
    SAY(pthread_rwlock_tryrdlock(&rwlock));
    SAY(pthread_rwlock_trywrlock(&rwlock));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_rwlock_wrlock(&rwlock));
    SAY(pthread_rwlock_unlock(&rwlock));
    SAY(pthread_spin_lock(&spin));
    SAY(pthread_spin_unlock(&spin));
    SAY(mtx_lock(&c11_mutex));
    SAY(mtx_unlock(&c11_mutex));
    errno = 5;
    SAY(sem_post(&semaphore));
    SAY(sem_wait(&semaphore));
    SAY(errno);
}

static void timeouts(void) {
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_t checking;
    pthread_mutex_init(&checking, &kind);
    SAY(pthread_mutex_lock(&checking));
    SAY(pthread_mutex_lock(&checking) == EDEADLK);
    pthread_mutexattr_settype(&kind, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_t recursive;
    pthread_mutex_init(&recursive, &kind);
    SAY(pthread_mutex_lock(&recursive));
    SAY(pthread_mutex_lock(&recursive));
    SAY(pthread_mutex_unlock(&recursive));
    SAY(pthread_mutex_unlock(&recursive));
    pthread_mutex_lock(&mutex);
    struct timespec t = soon(CLOCK_REALTIME);
    SAY(pthread_mutex_timedlock(&mutex, &t) == ETIMEDOUT);
    t = soon(CLOCK_REALTIME);
    SAY(pthread_cond_timedwait(&condition, &mutex, &t) == ETIMEDOUT);
    t = soon(CLOCK_MONOTONIC);
    SAY(pthread_cond_clockwait(&condition, &mutex, CLOCK_MONOTONIC, &t) == ETIMEDOUT);
    pthread_mutex_unlock(&mutex);
    t = soon(CLOCK_REALTIME);
    SAY(sem_timedwait(&semaphore, &t));
    SAY(errno == ETIMEDOUT);
}

static volatile int stage, partner_tid;

/* The partner says which call comes next; the main thread goes on once it sleeps in that call. */
static void next(void) { stage++; }
static void await_sleep(int wanted) {
    char path[64], text[256];
    while (stage != wanted)
        sched_yield();
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", partner_tid);
    for (;;) {
        FILE *file = fopen(path, "r");
        size_t n = fread(text, 1, sizeof text - 1, file);
        fclose(file);
        text[n] = 0;
        if (strrchr(text, ')')[2] == 'S')
            return;
        sched_yield();
    }
}

static void *partner(void *unused) {
    partner_tid = gettid();
    pthread_barrier_wait(&barrier); /* the main thread holds everything now */
    next();
    pthread_mutex_lock(&mutex);
    flag = 1;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&mutex);
    next();
    pthread_rwlock_rdlock(&rwlock);
    pthread_rwlock_unlock(&rwlock);
    next();
    pthread_spin_lock(&spin);
    pthread_spin_unlock(&spin);
    next();
    mtx_lock(&c11_mutex);
    flag = 2;
    cnd_broadcast(&c11_condition);
    mtx_unlock(&c11_mutex);
    next();
    sem_wait(&semaphore);
    eventfd_t value;
    next();
    eventfd_read(event, &value);
    return (void *)value;
}

static void contention(void) {
    pthread_t t;
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&rwlock);
    pthread_spin_lock(&spin);
    mtx_lock(&c11_mutex);
    pthread_create(&t, 0, partner, 0);
    pthread_barrier_wait(&barrier);
    await_sleep(1);
    while (flag != 1)
        pthread_cond_wait(&condition, &mutex);
    pthread_mutex_unlock(&mutex);
    await_sleep(2);
    pthread_rwlock_unlock(&rwlock);
    while (stage != 3)
        sched_yield();
    usleep(20000); /* a spinning thread does not sleep */
    pthread_spin_unlock(&spin);
    await_sleep(4);
    while (flag != 2)
        cnd_wait(&c11_condition, &c11_mutex);
    mtx_unlock(&c11_mutex);
    await_sleep(5);
    sem_post(&semaphore);
    await_sleep(6);
    eventfd_write(event, 9);
    void *r;
    pthread_join(t, &r);
    printf("partner %ld\n", (long)r);
}

int main(void) {
    pthread_spin_init(&spin, 0);
    pthread_barrier_init(&barrier, 0, 2);
    sem_init(&semaphore, 0, 0);
    mtx_init(&c11_mutex, mtx_timed);
    cnd_init(&c11_condition);
    event = eventfd(0, 0);
    free_locks();
    timeouts();
    contention();
    return 0;
}
