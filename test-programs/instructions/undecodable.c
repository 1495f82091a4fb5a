/* Bytes that are no instruction, reached after good ones in the same run of code: the good ones execute, then SIGILL
 * at the bad one, every time. An instruction cut off by an unmapped page is SIGSEGV at its own pc.
 * Answer: below. */
//@ stdout: ran 100, sigill 100, cut off 100
#include "micro.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static sigjmp_buf out;
static volatile long pc;
static volatile int sig;
static volatile char *fault;
static void on_fault(int s, siginfo_t *i, void *u) {
    sig = s, pc = ((ucontext_t *)u)->uc_mcontext.gregs[REG_RIP], fault = i->si_addr;
    siglongjmp(out, 1);
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGILL, &sa, 0), sigaction(SIGSEGV, &sa, 0);
    unsigned char *p = mmap(0, 8192, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(p + 4096, 4096);
    memcpy(p, "\xff\x07\x90\x0f\xff\xff\xff\xc4\xff\xff", 10); /* inc dword [rdi]; nop; ud0...; */
    p[3] = 0x0f, p[4] = 0x0b;                                    /* ud2, certain on every processor */
    memcpy(p + 4090, "\xff\x07\x90\x48\xb8\x01", 6);            /* inc dword [rdi]; nop; movabs rax, cut off */
    static volatile int ran, ill, cut;
    static int counter;
    for (volatile int i = 0; i < 100; i++) {
        if (sigsetjmp(out, 1) == 0)
            ((void (*)(int *))p)(&counter);
        ill += sig == SIGILL && pc == (long)(p + 3);
        if (sigsetjmp(out, 1) == 0)
            ((void (*)(int *))(p + 4090))(&counter);
        cut += sig == SIGSEGV && pc == (long)(p + 4093) && fault == (char *)(p + 4096);
    }
    ran = counter / 2;
    SHOW("ran %d, sigill %d, cut off %d", ran, ill, cut);
    return 0;
}
