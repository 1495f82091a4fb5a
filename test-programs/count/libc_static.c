/* A static C program: start-up, stdio, malloc, qsort, memcpy and math of glibc, all deterministic. No count is known by
 * hand; two ways of counting must agree. */
//@ flags: -static
//@ stdout: 999 4950 0123456789
#include "../check.h"
static int order(const void *a, const void *b) { return *(const int *)a - *(const int *)b; }
int main(void) {
    int v[100], sum = 0;
    for (int i = 0; i < 100; i++) v[i] = (i * 37 + 11) % 100;
    qsort(v, 100, sizeof *v, order);
    for (int i = 0; i < 100; i++) sum += v[i];
    char *text = malloc(1000), digits[11];
    memset(text, 'x', 999), text[999] = 0;
    for (int i = 0; i < 10; i++) digits[i] = (char)('0' + v[i]);
    digits[10] = 0;
    printf("%zu %d %s\n", strlen(text), sum, digits);
    free(text);
    return 0;
}
