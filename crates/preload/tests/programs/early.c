/* Threads before main, and thread-local destructors that use locks. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t key;
static int ended;
static void destroy(void *unused) {
    pthread_mutex_lock(&mutex);
    ended++;
    pthread_mutex_unlock(&mutex);
}
static void *run(void *unused) {
    pthread_setspecific(key, &key);
    return 0;
}
__attribute__((constructor(101))) static void before_main(void) {
    pthread_key_create(&key, destroy);
    pthread_t t;
    for (int i = 0; i < 3; i++) {
        pthread_create(&t, 0, run, 0);
        pthread_join(t, 0);
    }
}
int main(void) {
    printf("before main %d\n", ended);
    pthread_t t[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&t[i], 0, run, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(t[i], 0);
    printf("ended %d\n", ended);
}
