/* A byte-code interpreter with computed goto: one indirect jump per operation, flags live across some.
 * Answer: the machine's result. */
//@ stdout: acc 499999500000 steps 4000001
#include "../check.h"
int main(void) {
    static const void *ops[] = {&&add, &&dec, &&jnz, &&halt, &&nop};
    static const unsigned char program[] = {0, 4, 1, 2, 3};
    long acc = 0, n = 999999 + 1, steps = 0;
    const unsigned char *pc = program;
#define NEXT steps++; goto *ops[*pc++]
    NEXT;
add: acc += n - 1; NEXT;
nop: NEXT;
dec: n--; NEXT;
jnz: if (n) pc = program; NEXT;
halt:
    printf("acc %ld steps %ld\n", acc, steps);
    return 0;
}
