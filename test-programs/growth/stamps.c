/* One routine called again and again from a loop that calls nothing else: wherever a thread's stamps run out, it is at
 * a call of it. */
#include <stdio.h>

__attribute__((noinline, noclone)) static int sum(const int *v, int n) {
    int s = 0;
    for (int i = 0; i < n; i++) s += v[i];
    return s;
}

int main(void) {
    static int v[8];
    int total = 0;
    for (int k = 0; k < 8; k++) v[k] = k;
    for (int k = 0; k < 1400; k++) total += sum(v, k % 7 + 1);
    printf("%d\n", total);
    return 0;
}
