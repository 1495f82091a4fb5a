/* A library for dlopen_loop: answers 2000 + x plus 2, by other code at the same offsets. */
static int base;
static __thread int local = 2000;
__attribute__((constructor)) static void start(void) { base = 2; }
int answer(int x) {
    for (int i = 0; i < 100; i++) base = base * 2 / 2;
    return local + base + x;
}
