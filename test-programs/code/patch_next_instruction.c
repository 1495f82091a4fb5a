/* Code that patches the instruction right behind the store, in the same block, and code that patches itself
 * behind the program counter. x86 makes both visible at once.
 * Answer: the new values. */
//@ stdout: next 1000, loop 500500
#include "../check.h"
#include <sys/mman.h>
int main(void) {
    unsigned char *p = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* mov [rip+1], edi ; mov eax, imm32 ; ret : the store overwrites the immediate of the next instruction */
    static const unsigned char next[] = {0x89, 0x3d, 1, 0, 0, 0, 0xb8, 0, 0, 0, 0, 0xc3};
    memcpy(p, next, sizeof next);
    int right = 0;
    for (int i = 0; i < 1000; i++) right += ((int (*)(int))p)(i * 3) == i * 3;
    /* add eax, imm32 ; inc dword [imm] ; dec edi ; jnz : the loop changes its own addend */
    static const unsigned char loop[] = {0x31, 0xc0,                               /* xor eax, eax */
                                         0x05, 1, 0, 0, 0,                         /* add eax, 1 */
                                         0xff, 0x05, 0xf6, 0xff, 0xff, 0xff,       /* inc dword [rip-10] */
                                         0xff, 0xcf, 0x75, 0xf1, 0xc3};            /* dec edi; jnz -15; ret */
    memcpy(p + 64, loop, sizeof loop);
    int sum = ((int (*)(int))(p + 64))(1000);
    printf("next %d, loop %d\n", right, sum);
    return 0;
}
