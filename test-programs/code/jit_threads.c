/* One thread patches code that others are executing: an aligned 4-byte immediate in a hot loop, then a synchronised
 * replacement of whole functions by another thread (serialised by a barrier and cpuid).
 * Answer: only values that were ever written are seen, the last one in the end; replacements exact. */
//@ flags: -pthread
//@ stdout: torn 0, last seen 1, replaced 300
//@ repeat: 3
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

static unsigned char *code, *second;
static volatile int stop, torn, last_seen;
static pthread_barrier_t barrier;
static int replaced;
static void *runs(void *a) {
    while (!stop) {
        int v = ((int (*)(void))(code + 3))();
        if (v < 0 || v > 5000) torn++;
    }
    last_seen += ((int (*)(void))(code + 3))() == 5000;
    return a;
}
static void serialize(void) {
    unsigned a = 0, b, c = 0, d;
    __asm__ volatile("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d)::"memory");
}
static void *executes(void *a) {
    for (int i = 0; i < 300; i++) {
        pthread_barrier_wait(&barrier);
        serialize();
        replaced += ((int (*)(void))second)() == i;
        pthread_barrier_wait(&barrier);
    }
    return a;
}
int main(void) {
    code = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code + 3, "\xb8\0\0\0\0\xc3", 6); /* the immediate is 4-byte aligned */
    second = code + 4096;
    pthread_t t, u;
    CHECK(pthread_create(&t, 0, runs, 0) == 0);
    for (int i = 0; i <= 5000; i++) __atomic_store_n((int *)(code + 4), i, __ATOMIC_SEQ_CST);
    stop = 1;
    pthread_join(t, 0);
    pthread_barrier_init(&barrier, 0, 2);
    CHECK(pthread_create(&u, 0, executes, 0) == 0);
    for (int i = 0; i < 300; i++) {
        if (i % 2) {
            memcpy(second, "\xb8\0\0\0\0\xc3", 6);
            memcpy(second + 1, &i, 4);
        } else {
            memcpy(second, "\x68\0\0\0\0\x58\xc3", 7); /* push imm; pop rax; ret */
            memcpy(second + 1, &i, 4);
        }
        pthread_barrier_wait(&barrier);
        pthread_barrier_wait(&barrier);
    }
    pthread_join(u, 0);
    printf("torn %d, last seen %d, replaced %d\n", torn, last_seen, replaced);
    return 0;
}
