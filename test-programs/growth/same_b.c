#include <stdio.h>
long fa(const int *v, int n);
__attribute__((noinline, noclone)) static long helper(const int *v, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) sum += v[i] ^ v[j];
    return sum;
}
__attribute__((noinline)) static long fb(const int *v, int n) { return helper(v, n) + 1; }
int main(void) {
    static int v[400];
    long sum = 0;
    for (int i = 0; i < 400; i++) v[i] = i;
    for (int n = 10; n < 400; n += 10) sum += fa(v, n) + fb(v, n);
    printf("%ld\n", sum);
    return 0;
}
