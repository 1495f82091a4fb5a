/* A library to be loaded and unloaded: its constructor and its function call back. */
typedef int (*callback)(int);
extern int from_constructor(int) __attribute__((weak));
static int in_constructor = -1;
__attribute__((constructor)) static void born(void) {
    if (from_constructor)
        in_constructor = from_constructor(0);
}
__attribute__((noinline)) int plugin_call(callback f, int n) { return n == 0 ? f(0) + 0 * n : plugin_call(f, n - 1) + 1; }
int plugin_constructed(void) { return in_constructor; }
