/* Threads with profiles of their own: each of four sums arrays of many sizes, forwards or by recursion. */
#include <pthread.h>
#include <stdio.h>

#define ROUTINE __attribute__((noinline))
#define LARGEST 2000

static int numbers[LARGEST];

ROUTINE long sum_forwards(const int *v, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}

ROUTINE long sum_halves(const int *v, int n) {
    if (n == 0) return 0;
    if (n == 1) return v[0];
    return sum_halves(v, n / 2) + sum_halves(v + n / 2, n - n / 2);
}

ROUTINE void *work(void *argument) {
    long number = (long)argument, sum = 0;
    for (int n = 10; n <= LARGEST; n += 100 + 10 * (int)number)
        sum += number % 2 ? sum_forwards(numbers, n) : sum_halves(numbers, n);
    return (void *)sum;
}

int main(void) {
    pthread_t threads[4];
    long total = 0;
    for (int i = 0; i < LARGEST; i++) numbers[i] = i % 100;
    for (long i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < 4; i++) {
        void *sum;
        pthread_join(threads[i], &sum);
        total += (long)sum;
    }
    printf("%ld\n", total);
    return 0;
}
