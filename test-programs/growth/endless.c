/* Never ends by itself; says when it has something to show. */
#include <unistd.h>

__attribute__((noinline, noclone)) static int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}

int main(void) {
    static int v[64];
    volatile int total = 0;
    for (int n = 1; n <= 64; n++) total += sum(v, n);
    if (write(1, "ready\n", 6) != 6) return 1;
    for (;;) pause();
}
