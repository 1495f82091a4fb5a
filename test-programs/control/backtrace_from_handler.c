/* backtrace() from a signal handler, through the signal frame, as crash reporters do.
 * Answer: the interrupted function and its callers are found. */
//@ flags: -O1 -rdynamic -fno-optimize-sibling-calls -no-pie
//@ stdout: victim 1, caller 1, main 1
//@ repeat: 3
#include "../check.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>

static int victim_seen, caller_seen, main_seen;
static void on_segv(int s) {
    (void)s;
    void *pc[40];
    int n = backtrace(pc, 40);
    for (int i = 0; i < n; i++) {
        Dl_info d;
        if (!dladdr((char *)pc[i], &d) || !d.dli_sname) continue;
        victim_seen |= !strcmp(d.dli_sname, "victim");
        caller_seen |= !strcmp(d.dli_sname, "caller");
        main_seen |= !strcmp(d.dli_sname, "main");
    }
    printf("victim %d, caller %d, main %d\n", victim_seen, caller_seen, main_seen);
    fflush(stdout);
    _exit(0);
}
__attribute__((noinline)) void victim(volatile int *p) {
    *p = 1;
    __asm__ volatile("");
}
__attribute__((noinline)) void caller(void) {
    victim((int *)16);
    __asm__ volatile("");
}
int main(void) {
    void *warm[2];
    backtrace(warm, 2);
    signal(SIGSEGV, on_segv);
    caller();
    return 1;
}
