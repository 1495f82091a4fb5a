/* Kills itself: everything that was completed must be in the profile. */
#include <signal.h>
#include <unistd.h>

__attribute__((noinline, noclone)) static int leaf(const int *v) { return *v; }
__attribute__((noinline, noclone)) static long sum_of(const int *v, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}

int main(void) {
    static int v[500];
    volatile long sum = 0;
    for (int n = 10; n <= 500; n += 10) sum += sum_of(v, n);
    for (int i = 0; i < 3000; i++) sum += leaf(v + i % 500);
    kill(getpid(), SIGKILL);
    return 0;
}
