/* EFLAGS.AC set by the program (the JVM's processor probe does): an unaligned access then raises SIGBUS in the
 * program's own code and nowhere else; the flag stays the program's. Answer: below. */
//@ stdout: ac kept 1, sigbus 1, code 1, cleared 1
#include "micro.h"
#include <setjmp.h>
#include <signal.h>
static sigjmp_buf out;
static volatile int sig, code;
static void on_bus(int s, siginfo_t *i, void *u) {
    (void)u;
    __asm__ volatile("pushfq; andl $~0x40000, (%%rsp); popfq" ::: "cc", "memory");
    sig = s, code = i->si_code;
    siglongjmp(out, 1);
}
static void set_ac(void) { __asm__ volatile("lea -128(%%rsp),%%rsp; pushfq; orl $0x40000, (%%rsp); popfq; lea 128(%%rsp),%%rsp" ::: "cc", "memory"); }
static void clear_ac(void) { __asm__ volatile("lea -128(%%rsp),%%rsp; pushfq; andl $~0x40000, (%%rsp); popfq; lea 128(%%rsp),%%rsp" ::: "cc", "memory"); }
__attribute__((noinline)) static long work(long n) { return n < 2 ? n : work(n - 1) + work(n - 2); }
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_bus, .sa_flags = SA_SIGINFO};
    sigaction(SIGBUS, &sa, 0);
    set_ac();
    work(12); /* new code, calls and returns with AC set */
    int kept = (flags_now() >> 18) & 1;
    clear_ac();
    static long buffer[2];
    if (sigsetjmp(out, 1) == 0) {
        set_ac();
        __asm__ volatile("mov (%0), %%rax" ::"r"((char *)buffer + 1) : "rax");
        clear_ac();
    } else
        clear_ac();
    int cleared = !((flags_now() >> 18) & 1);
    SHOW("ac kept %d, sigbus %d, code %d, cleared %d", kept, sig == SIGBUS, code, cleared);
    return 0;
}
