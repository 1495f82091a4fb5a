/* One handler for SIGFPE, SIGILL, SIGBUS, SIGTRAP and a call through null: signal, code, address and pc are exact.
 * Answer: below. */
//@ stdout: div by zero: signal 8 code 1 at pc 1 addr pc 1
//@ stdout: INT_MIN / -1: signal 8 code 1 at pc 1 addr pc 1
//@ stdout: ud2: signal 4 code 2 at pc 1 addr pc 1
//@ stdout: undecodable: signal 4 code 2 at pc 1 addr pc 1
//@ stdout: null call: signal 11 code 1 pc 0 addr 0 return address right 1
//@ stdout: call into data: signal 11 code 2 pc is target 1
//@ stdout: int3: signal 5 code 128 pc after 1
//@ stdout: non-canonical: signal 11 code 128 addr 0
//@ stdout: privileged: signal 11 code 128 at pc 1
//@ stdout: past the end of a file: signal 7 code 2
//@ stdout: write to code: signal 11 code 2
//@ repeat: 3
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

static sigjmp_buf out;
static volatile struct {
    int sig, code;
    void *addr;
    long pc, sp, top;
} got;
static void on_fault(int s, siginfo_t *i, void *u) {
    greg_t *g = ((ucontext_t *)u)->uc_mcontext.gregs;
    got.sig = s, got.code = i->si_code, got.addr = i->si_addr, got.pc = g[REG_RIP], got.sp = g[REG_RSP];
    got.top = *(long *)got.sp;
    siglongjmp(out, 1);
}
extern char div_here[], min_here[], ud_here[], bad_here[], null_back[], trap_after[], priv_here[];
static char data[64] __attribute__((aligned(64))) = {(char)0xc3};
#define TRY(code) \
    if (sigsetjmp(out, 1) == 0) { \
        code; \
        puts("no fault"); \
    } else
int main(void) {
    struct sigaction sa = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    int all[] = {SIGFPE, SIGILL, SIGBUS, SIGTRAP, SIGSEGV};
    for (int i = 0; i < 5; i++) sigaction(all[i], &sa, 0);
    TRY(__asm__ volatile("div_here: idivl %2" ::"a"(1), "d"(0), "r"(0)))
    printf("div by zero: signal %d code %d at pc %d addr pc %d\n", got.sig, got.code, got.pc == (long)div_here, got.addr == div_here);
    TRY(__asm__ volatile("min_here: idivl %2" ::"a"(0x80000000), "d"(-1), "r"(-1)))
    printf("INT_MIN / -1: signal %d code %d at pc %d addr pc %d\n", got.sig, got.code, got.pc == (long)min_here, got.addr == min_here);
    TRY(__asm__ volatile("ud_here: ud2"))
    printf("ud2: signal %d code %d at pc %d addr pc %d\n", got.sig, got.code, got.pc == (long)ud_here, got.addr == ud_here);
    TRY(__asm__ volatile("bad_here: .byte 0x06, 0x90, 0x90"))
    printf("undecodable: signal %d code %d at pc %d addr pc %d\n", got.sig, got.code, got.pc == (long)bad_here, got.addr == bad_here);
    TRY(__asm__ volatile("call *%0\nnull_back:" ::"r"(0l) : "memory"))
    printf("null call: signal %d code %d pc %lx addr %lx return address right %d\n", got.sig, got.code, got.pc,
           (long)got.addr, got.top == (long)null_back);
    TRY(__asm__ volatile("call *%0" ::"r"(data) : "memory"))
    printf("call into data: signal %d code %d pc is target %d\n", got.sig, got.code, got.pc == (long)data && got.addr == data);
    TRY(__asm__ volatile("int3\ntrap_after:"))
    printf("int3: signal %d code %d pc after %d\n", got.sig, got.code, got.pc == (long)trap_after);
    TRY(*(volatile char *)0x8000000000000000ul = 1)
    printf("non-canonical: signal %d code %d addr %lx\n", got.sig, got.code, (long)got.addr);
    TRY(__asm__ volatile("priv_here: hlt"))
    printf("privileged: signal %d code %d at pc %d\n", got.sig, got.code, got.pc == (long)priv_here);
    char name[] = "/tmp/farsight-bus-XXXXXX";
    int fd = mkstemp(name);
    unlink(name);
    char *p = mmap(0, 4096, PROT_READ, MAP_SHARED, fd, 0);
    TRY((void)*(volatile char *)p)
    printf("past the end of a file: signal %d code %d\n", got.sig, got.code);
    TRY(*(volatile char *)main = 1)
    printf("write to code: signal %d code %d\n", got.sig, got.code);
    return 0;
}
