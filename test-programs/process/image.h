/* The body of the image_* programs. */
#include "../check.h"
#include <pthread.h>

static __thread int mine = 5;
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
__attribute__((constructor)) static void first(void) { puts("constructor first"); }
static void *add(void *a) {
    mine += *(int *)a;
    *(int *)a = mine - 5;
    return 0;
}
int main(void) {
    int *v = malloc(10 * sizeof *v), sum = 0;
    for (int i = 0; i < 10; i++) v[i] = (i * 7 + 3) % 10;
    qsort(v, 10, sizeof *v, order);
    printf("sorted");
    for (int i = 0; i < 10; i++) printf(" %d", v[i]);
    pthread_t t[10];
    for (int i = 0; i < 10; i++) CHECK(pthread_create(&t[i], 0, add, &v[i]) == 0);
    for (int i = 0; i < 10; i++) pthread_join(t[i], 0), sum += v[i];
    CHECK(mine == 5);
    printf("\nthreads %d\n", sum);
    free(v);
    return 0;
}
