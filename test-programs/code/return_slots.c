/* Calls whose return addresses agree in many low bits, or in all but the high half: made in turn, by two threads, one
 * inside the other; and returns to a place behind a call other than the one that was made, or behind none.
 * Answer: each return goes where the stack says. */
//@ flags: -pthread
//@ stdout: in turn 4000, nested 4000, elsewhere 3000, strays 0
#include "../check.h"
#include <pthread.h>
#include <sys/mman.h>

typedef int (*site)(int (*callee)(void *), void *arg);

/* A function that calls its first argument with the second, and adds `value` to the result. */
static site calling(uintptr_t at, int value) {
    static const unsigned char code[] = {
        0x53,             /* push rbx */
        0x48, 0x89, 0xf8, /* mov rax, rdi */
        0x48, 0x89, 0xf7, /* mov rdi, rsi */
        0xff, 0xd0,       /* call rax */
        0x05, 0, 0, 0, 0, /* add eax, value */
        0x5b,             /* pop rbx */
        0xc3,             /* ret */
    };
    uintptr_t page = at & ~0xfffUL;
    unsigned char *p = mmap((void *)page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(p == (void *)page);
    memcpy((void *)at, code, sizeof code);
    memcpy((void *)(at + 10), &value, 4);
    CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
    return (site)at;
}

static site sites[4];

static int zero(void *arg) {
    (void)arg;
    return 0;
}

/* Calls itself through one site after the other: arg is the number of sites left. */
static int next(void *arg) {
    long left = (long)arg;
    return left == 0 ? 0 : sites[left - 1](next, (void *)(left - 1));
}

/* Returns to its return address plus its argument. */
int displaced(void *by);
__asm__(".text\n.globl displaced\n.type displaced, @function\n"
        "displaced: mov (%rsp), %rax\n add %rdi, %rax\n mov %rax, (%rsp)\n xor %eax, %eax\n ret\n");

static int in_turn(void) {
    int good = 0;
    for (int i = 0; i < 1000; i++)
        for (int k = 0; k < 4; k++)
            good += sites[k](zero, 0) == 1 << k;
    return good;
}

static volatile int done;
static void *caller(void *strays) {
    while (!done)
        *(int *)strays += in_turn() != 4000;
    return 0;
}

int main(void) {
    static const uintptr_t at[4] = {0x100012340000, 0x100012440000, 0x200012340000, 0x100052340000};
    int strays = 0;
    pthread_t thread;
    sites[0] = calling(at[0], 1); /* alone at first */
    for (int i = 0; i < 1000; i++)
        CHECK(sites[0](zero, 0) == 1);
    for (int k = 1; k < 4; k++)
        sites[k] = calling(at[k], 1 << k);
    CHECK(pthread_create(&thread, 0, caller, &strays) == 0);
    int turns = in_turn();
    int nested = 0;
    for (int i = 0; i < 4000; i++)
        nested += next((void *)4L) == 15;
    int elsewhere = 0; /* the call is made by the first, the value added by another */
    for (int i = 0; i < 1000; i++)
        for (int k = 1; k < 4; k++)
            elsewhere += sites[0](displaced, (void *)(at[k] - at[0])) == 1 << k;
    site lone = calling(0x100061234000, 16); /* never called: nothing is known of returns to it */
    for (int i = 0; i < 100; i++)
        CHECK(sites[0](displaced, (void *)((uintptr_t)lone - at[0])) == 16);
    done = 1;
    CHECK(pthread_join(thread, 0) == 0);
    printf("in turn %d, nested %d, elsewhere %d, strays %d\n", turns, nested, elsewhere, strays);
    return 0;
}
