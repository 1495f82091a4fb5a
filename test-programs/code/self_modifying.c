/* Code that rewrites itself in an RWX page: 20,000 rewrites of an immediate, each followed by a call.
 * Answer: the sum of the immediates, as written. */
//@ stdout: sum 199990000
#include "../check.h"
#include <sys/mman.h>
int main(void) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(p != MAP_FAILED);
    memcpy(p, "\xb8\0\0\0\0\xc3", 6); /* mov eax, imm32; ret */
    long sum = 0;
    for (int i = 0; i < 20000; i++) {
        memcpy(p + 1, &i, 4);
        sum += ((int (*)(void))p)();
    }
    printf("sum %ld\n", sum);
    return 0;
}
