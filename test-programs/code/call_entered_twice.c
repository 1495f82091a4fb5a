/* A call instruction that is reached from the code before it and jumped to directly, on a page whose data changes: what
 * was made of it in the one way is thrown away with the page while the other is found to be unchanged.
 * Answer: both ways call, each round. */
//@ stdout: through 100, direct 100
#include "../check.h"
#include <sys/mman.h>

int main(void) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    /* nop; nop; call p+64; ret ... mov eax, [rip+data]; ret */
    memcpy(p, "\x90\x90\xe8\x39\0\0\0\xc3", 8);
    memcpy(p + 64, "\x8b\x05\xba\x07\0\0\xc3", 7);
    int (*through)(void) = (int (*)(void))p, (*direct)(void) = (int (*)(void))(p + 2);
    volatile int *data = (volatile int *)(p + 2048);
    int a = 0, b = 0;
    for (int i = 0; i < 100; i++) {
        *data = i;
        a += through() == i && direct() == i;
        *data = i + 1;
        b += direct() == i + 1;
    }
    printf("through %d, direct %d\n", a, b);
    return 0;
}
