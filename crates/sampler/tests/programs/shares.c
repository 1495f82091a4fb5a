/* Known shares of CPU time: heavy three parts, light one part, in N threads; both under a known caller. Prints
   its result. Arguments: threads, rounds. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int rounds;
__attribute__((noinline)) unsigned long spin(unsigned long x, int n) {
    for (int i = 0; i < n; i++)
        x = x * 6364136223846793005UL + 1442695040888963407UL;
    return x;
}
__attribute__((noinline)) unsigned long heavy(unsigned long x) { return spin(x, 3000) + 1; }
__attribute__((noinline)) unsigned long light(unsigned long x) { return spin(x, 1000) + 1; }
__attribute__((noinline)) unsigned long work(unsigned long x) { return heavy(x) ^ light(x); }

void *run(void *arg) {
    unsigned long x = (unsigned long)arg;
    for (int i = 0; i < rounds; i++)
        x += work(x);
    return (void *)x;
}

int main(int argc, char **argv) {
    int threads = atoi(argv[1]);
    rounds = atoi(argv[2]);
    unsigned long sum = 0;
    pthread_t *t = calloc(threads, sizeof *t);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&t[i], 0, run, (void *)(unsigned long)i))
            return 1;
    for (int i = 0; i < threads; i++) {
        void *x;
        pthread_join(t[i], &x);
        sum += (unsigned long)x;
    }
    printf("%lu\n", sum);
}
