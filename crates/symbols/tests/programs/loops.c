/* Loops with known nesting; the comments name them. */
#include <stdio.h>

__attribute__((noinline)) int nest(int *v, int n) {
    int sum = 0;
    for (int i = 0; i < n; i++) { /* loop outer */
        for (int j = 0; j < i; j++) /* loop inner */
            sum += v[j] ^ i;
        v[i] = sum;
    }
    while (sum > 10) { /* loop after */
        sum -= v[sum & 3] | 1;
    }
    return sum;
}

__attribute__((noinline)) int choose(const char *s) {
    int state = 0;
    for (; *s; s++) { /* loop switch */
        switch (*s) {
        case 'a': state += 3; break;
        case 'b': state ^= 5; break;
        case 'c': state *= 7; break;
        case 'd': state -= 11; break;
        case 'e': state = -state; break;
        case 'f': state |= 64; break;
        case 'g': printf("%d\n", state); break;
        default: state++;
        }
    }
    return state;
}

__attribute__((noinline)) int straight(int x) { return x > 3 ? x * 2 : x + 9; }

int main(int argc, char **argv) {
    int v[64] = {argc, 2, 3};
    return nest(v, 64) + choose(argv[0]) + straight(argc);
}
