/* A library for dlopen_loop: answers 1000 + x, plus one that its constructor put into TLS-free data. */
#include <string.h>
static int base;
static __thread int local = 1000;
__attribute__((constructor)) static void start(void) { base = 1; }
int answer(int x) {
    char text[2000];
    memset(text, x, sizeof text);
    return local + base + x + (text[1999] != (char)x);
}
