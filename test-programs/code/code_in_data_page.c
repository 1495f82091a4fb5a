/* Code and data that change share one page: a counter beside the function that increments it, and a system call
 * that writes into the page (read(2) must not fail there).
 * Answer: below. */
//@ stdout: counted 50000, read worked 1, function from file 5
#include "../check.h"
#include <sys/mman.h>
int main(void) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* inc dword [rip+0x7a]; mov eax, [rip+0x74]; ret -> counter at p+0x80 */
    memcpy(p, "\xff\x05\x7a\0\0\0\x8b\x05\x74\0\0\0\xc3", 13);
    int last = 0;
    for (int i = 0; i < 50000; i++) last = ((int (*)(void))p)();
    int fd[2];
    CHECK(pipe(fd) == 0);
    CHECK(write(fd[1], "\xb8\x05\0\0\0\xc3", 6) == 6);
    int ok = read(fd[0], p, 6) == 6;
    printf("counted %d, read worked %d, function from file %d\n", last, ok, ((int (*)(void))p)());
    return 0;
}
