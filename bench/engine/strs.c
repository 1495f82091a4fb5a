/* Strings: formatting, copying, searching, comparing, sorting by strcmp; libc's vector routines in short calls. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
int main(void) {
    enum { N = 260000 };
    static char *v[N];
    unsigned x = 7;
    for (int i = 0; i < N; i++) {
        char text[100];
        x = x * 1664525 + 1013904223;
        snprintf(text, sizeof text, "item-%u-%s-%d", x % 1000003, i % 2 ? "left" : "right", i);
        v[i] = strdup(text);
    }
    qsort(v, N, sizeof *v, order);
    unsigned long found = 0, length = 0;
    for (int i = 0; i < N; i++) {
        found += strstr(v[i], "left") != 0;
        found += strchr(v[i], '9') != 0;
        length += strlen(v[i]);
        if (i) found += memcmp(v[i], v[i - 1], 6) == 0;
    }
    printf("%lu %lu %s\n", found, length, v[N / 2]);
    return 0;
}
