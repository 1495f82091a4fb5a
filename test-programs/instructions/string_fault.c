/* A rep movs that faults half-way: the handler sees how far it came (rcx, rsi, rdi at the instruction) and opens
 * the next page; it goes on from there. Answer: below. */
//@ stdout: faults 3, copied 1, progress right 1
#include "micro.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
static unsigned char source[4 * 4096], *dest;
static volatile int faults, right = 1;
extern char rep_here[];
static void on_segv(int s, siginfo_t *i, void *u) {
    (void)s, (void)i;
    greg_t *g = ((ucontext_t *)u)->uc_mcontext.gregs;
    unsigned long done = (unsigned long)g[REG_RDI] - (unsigned long)dest - 100;
    if (g[REG_RIP] != (greg_t)rep_here || done + g[REG_RCX] != 3 * 4096 || g[REG_RSI] != (greg_t)(source + done) ||
        (unsigned char *)g[REG_RDI] != dest + 4096 * (faults + 1))
        right = 0;
    faults++;
    mprotect(dest + 4096 * faults, 4096, PROT_READ | PROT_WRITE);
}
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, 0);
    for (unsigned i = 0; i < sizeof source; i++) source[i] = (unsigned char)(i % 251);
    dest = mmap(0, 5 * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(dest, 4096, PROT_READ | PROT_WRITE);
    unsigned long s = (unsigned long)source, d = (unsigned long)dest + 100, c = 3 * 4096;
    __asm__ volatile("rep_here: rep movsb" : "+S"(s), "+D"(d), "+c"(c)::"memory");
    SHOW("faults %d, copied %d, progress right %d", faults, !memcmp(dest + 100, source, 3 * 4096), right);
    return 0;
}
