// A thread whose stack has 64 KB, most of them in use while it works.
#include "idle.h"
#include <pthread.h>
#include <string.h>

__attribute__((noinline)) uint64_t deep(void) {
    char room[40 << 10];
    memset(room, 1, sizeof room);
    __asm__ volatile("" : : "r"(room) : "memory");
    return burn(0.3) + room[7];
}

static void *work(void *unused) { return (void *)deep(); }

int main(void) {
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 << 10);
    pthread_t t;
    void *result;
    if (pthread_create(&t, &attributes, work, 0)) return 1;
    pthread_join(t, &result);
    printf("%d\n", result != 0);
}
