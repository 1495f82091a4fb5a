/* A library whose constructor works before main begins, called by the dynamic linker; with a thread, so that samples are
 * taken by then. And, with -DMAIN, the program that needs it. */
#include <pthread.h>
#include <stdio.h>

void early_needed(void);
#ifdef MAIN
int main() {
    early_needed();
    puts("main");
}
#else
static void *nothing(void *a) { return a; }
__attribute__((constructor)) static void early(void) {
    pthread_t t;
    pthread_create(&t, 0, nothing, 0);
    pthread_join(t, 0);
    for (volatile unsigned long i = 0; i < 100000000; i++)
        ;
}
void early_needed(void) {}
#endif
