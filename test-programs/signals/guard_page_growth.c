/* Memory that a handler makes accessible on demand (as garbage collectors do): the faulting store is repeated.
 * Answer: 1000 pages, each faulting once. */
//@ stdout: faults 1000, sum 499500
//@ repeat: 3
#include "../check.h"
#include <signal.h>
#include <sys/mman.h>

static char *base;
static volatile int faults;
static void on_segv(int s, siginfo_t *i, void *u) {
    (void)s, (void)u;
    faults++;
    char *page = (char *)((uintptr_t)i->si_addr & ~4095ul);
    CHECK(page >= base && page < base + 4096 * 1000);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
}
int main(void) {
    base = mmap(0, 4096 * 1000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction sa = {.sa_sigaction = on_segv, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &sa, 0);
    long sum = 0;
    for (int i = 0; i < 1000; i++) *(volatile int *)(base + 4096 * i + 8 * (i % 500)) += i;
    for (int i = 0; i < 1000; i++) sum += *(int *)(base + 4096 * i + 8 * (i % 500));
    printf("faults %d, sum %ld\n", faults, sum);
    return 0;
}
