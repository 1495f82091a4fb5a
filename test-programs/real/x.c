/* For compilers: structures, floating point, library calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
struct s {
    int a;
    double b;
    char c[10];
};
static int cmp(const void *x, const void *y) { return ((const struct s *)x)->a - ((const struct s *)y)->a; }
int main(void) {
    struct s v[50];
    memset(v, 0, sizeof v);
    for (int i = 0; i < 50; i++) {
        v[i].a = i * 37 % 50;
        v[i].b = i / 3.0;
    }
    qsort(v, 50, sizeof *v, cmp);
    double t = 0;
    for (int i = 0; i < 50; i++) t += v[i].b * i;
    printf("%.4f\n", t);
    return 0;
}
