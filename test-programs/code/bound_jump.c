/* A jump through a word at a fixed place, as in a PLT: its target changes after it was taken many times, to an address that
 * differs in the high half alone, then in the low one; while another thread takes it; and the word cannot be read for a
 * while.
 * Answer: always where the word says; the fault is at the jump, and the jump is made in the end. */
//@ flags: -pthread
//@ stdout: ones 1000, twos 1000, threes 1000, ones again 1000, strays 0, faults 1
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

__attribute__((aligned(4096))) int (*volatile slot[512])(void);
int stub(void);
__asm__(".text\n.globl stub\n.type stub, @function\nstub: jmp *slot(%rip)\n");

static volatile int faults, done;

static void on_fault(int s, siginfo_t *info, void *context) {
    ucontext_t *u = context;
    CHECK(s == SIGSEGV && info->si_addr == (void *)slot);
    CHECK(u->uc_mcontext.gregs[REG_RIP] == (greg_t)(uintptr_t)stub);
    faults++;
    CHECK(mprotect((void *)slot, 4096, PROT_READ | PROT_WRITE) == 0);
}

static int (*returning(uintptr_t at, int value))(void) {
    unsigned char *p = mmap((void *)at, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(p == (void *)at);
    memcpy(p, "\xb8\0\0\0\0\xc3", 6); /* mov eax, value; ret */
    memcpy(p + 1, &value, 4);
    CHECK(mprotect(p, 4096, PROT_READ | PROT_EXEC) == 0);
    return (int (*)(void))at;
}

static int times(int value) {
    int n = 0;
    for (int i = 0; i < 1000; i++)
        n += stub() == value;
    return n;
}

static void *taker(void *strays) {
    while (!done) {
        int v = stub();
        *(int *)strays += v < 1 || v > 3;
    }
    return 0;
}

int main(void) {
    int (*one)(void) = returning(0x100012340000, 1);
    int (*two)(void) = returning(0x200012340000, 2); /* the same low half */
    int (*three)(void) = returning(0x200056780000, 3);
    slot[0] = one;
    int ones = times(1);
    slot[0] = two;
    int twos = times(2);
    slot[0] = three;
    int threes = times(3);
    int strays = 0;
    pthread_t t;
    CHECK(pthread_create(&t, 0, taker, &strays) == 0);
    for (int i = 0; i < 30000; i++)
        slot[0] = i % 3 == 0 ? two : i % 3 == 1 ? three : one;
    done = 1;
    CHECK(pthread_join(t, 0) == 0);
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSEGV, &a, 0) == 0);
    CHECK(mprotect((void *)slot, 4096, PROT_NONE) == 0);
    int again = times(1);
    printf("ones %d, twos %d, threes %d, ones again %d, strays %d, faults %d\n", ones, twos, threes, again, strays, faults);
    return 0;
}
