/* Two routines of one name in two files: one linear, one quadratic. They must not become one. */
__attribute__((noinline, noclone)) static long helper(const int *v, int n) {
    long sum = 0;
    for (int i = 0; i < n; i++) sum += v[i];
    return sum;
}
long fa(const int *v, int n) { return helper(v, n) + 1; }
