/* The unwinder against backtrace(), in places where frames are unusual. Prints "ok NAME" per place. */
#define _GNU_SOURCE
#include "step.h"
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

#define MAX 5000
static void *ours[MAX], *theirs[MAX];
static const char *volatile place; /* read by signal handlers */

/* Compares; gives the number of frames. */
__attribute__((noinline)) int same(int unused) {
    int n = farsight_walk(ours, MAX), m = backtrace(theirs, MAX), bad = n != m;
    for (int i = 1; i < n && i < m; i++)
        bad |= ours[i] != theirs[i];
    if (bad) {
        printf("DIFFERS %s: %d frames, backtrace has %d\n", place, n, m);
        for (int i = 0; i < n || i < m; i++)
            if (i < 8 || i > n - 8)
                printf("  %p %p\n", i < n ? ours[i] : 0, i < m ? theirs[i] : 0);
    } else {
        printf("ok %s\n", place);
    }
    return n;
}

int from_constructor(int n) { return same(n); }

__attribute__((noinline)) int deep(int n) { return n == 0 ? same(0) : deep(n - 1) + 1; }

static int compare(const void *a, const void *b) {
    static int once;
    if (!once++)
        same(0);
    return *(int *)a - *(int *)b;
}

static void on_signal(int s, siginfo_t *i, void *c) { same(0); }

static void *thread(void *a) {
    same(0);
    pthread_exit(0);
}

static ucontext_t main_context, coroutine_context;
static void coroutine(void) {
    same(0);
    swapcontext(&coroutine_context, &main_context);
}

static void handle(int s, int flags) {
    struct sigaction action = {.sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | flags};
    sigaction(s, &action, 0);
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IONBF, 0);
    void *warm[4];
    backtrace(warm, 4); /* loads libgcc_s */

    place = "main";
    same(0);
    place = "recursion";
    deep(3000);
    place = "callback";
    int values[] = {3, 1, 2};
    qsort(values, 3, sizeof *values, compare);

    place = "signal";
    handle(SIGUSR1, 0);
    raise(SIGUSR1);
    place = "signal-altstack";
    stack_t alternate = {.ss_sp = malloc(65536), .ss_size = 65536};
    sigaltstack(&alternate, 0);
    handle(SIGUSR2, SA_ONSTACK);
    raise(SIGUSR2);
    place = "signal-fault";
    handle(SIGTRAP, 0);
    __asm__ volatile("int3");

    place = "thread";
    pthread_t t;
    pthread_create(&t, 0, thread, 0);
    pthread_join(t, 0);

    place = "coroutine";
    getcontext(&coroutine_context);
    coroutine_context.uc_stack.ss_sp = malloc(65536);
    coroutine_context.uc_stack.ss_size = 65536;
    coroutine_context.uc_link = &main_context;
    makecontext(&coroutine_context, coroutine, 0);
    swapcontext(&main_context, &coroutine_context);

    for (int round = 0; round < 3; round++) {
        place = "constructor";
        void *library = dlopen(argv[1], RTLD_NOW);
        int (*call)(int (*)(int), int) = dlsym(library, "plugin_call");
        place = "plugin";
        call(same, 5);
        dlclose(library);
        place = "after-dlclose";
        same(0);
    }

    /* Generated code without unwind information: push rbx; call rdi; pop rbx; ret. The walk must end there. */
    unsigned char bytes[] = {0x53, 0xff, 0xd7, 0x5b, 0xc3};
    void *code = mmap(0, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(code, bytes, sizeof bytes);
    extern int generated(int);
    int n = ((int (*)(int (*)(int)))code)(generated);
    printf("%s generated-code\n", n == 2 ? "ok" : "DIFFERS");
    return 0;
}

__attribute__((noinline)) int generated(int unused) {
    volatile int n = farsight_walk(ours, MAX); /* volatile: not a tail call */
    return n;
}
