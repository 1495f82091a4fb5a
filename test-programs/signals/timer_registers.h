/* The body of the timer_* programs: a loop that loads every general register, the flags and all xmm registers with
 * known values, works for a while and checks them, while a timer interrupts it; the handler clobbers what it may.
 * A signal taken at the wrong place, or a register not given back, shows as a bad round. */
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>

static volatile long signals;
static volatile double junk = 1;
static void on_signal(int s) {
    (void)s;
    __atomic_add_fetch(&signals, 1, __ATOMIC_RELAXED);
    for (int i = 0; i < 10; i++) junk = junk * 1.0000001 + i;
    char text[100];
    snprintf(text, sizeof text, "%ld %f", signals, junk);
}
/* Returns 0 when all is as it should be, else the number of the register that is not. */
__attribute__((naked, noinline)) static long round_of_registers(const uint64_t *xmm __attribute__((unused)),
                                                                long laps __attribute__((unused))) {
    __asm__ volatile(
        "push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "push %rdi; push %rsi\n"
        "movups (%rdi), %xmm0; movups 16(%rdi), %xmm1; movups 32(%rdi), %xmm7; movups 48(%rdi), %xmm15\n"
        "mov $0x101010101010101, %rax; mov $0x202, %rbx; mov $0x404, %rdx; mov $0x606, %rdi\n"
        "mov $0x707, %rbp; mov $0x808, %r8; mov $0x909, %r9; mov $0xa0a, %r10; mov $0xb0b, %r11\n"
        "mov $0xc0c, %r12; mov $0xd0d, %r13; mov $0xe0e, %r14; mov $0xf0f, %r15\n"
        "mov (%rsp), %rcx; mov $0x505, %rsi\n"
        "cmp %rbx, %rbx; stc\n" /* ZF and CF set: nothing below changes them */
        "1: lea 1(%rax), %rax; lea -1(%rax), %rax\n"
        "movq %r15, -24(%rsp); movq -24(%rsp), %r15\n" /* red zone */
        "paddq %xmm1, %xmm0; psubq %xmm1, %xmm0\n"
        "jnc 9f; jnz 9f\n"
        "lea -1(%rcx), %rcx; jrcxz 2f; jmp 1b\n"
        "2: jnc 9f; jnz 9f\n"
        "xor %ecx, %ecx\n"
        "mov $0x101010101010101, %rcx; cmp %rcx, %rax; mov $1, %ecx; jne 8f\n"
        "cmp $0x202, %rbx; mov $2, %ecx; jne 8f\n cmp $0x404, %rdx; mov $4, %ecx; jne 8f\n"
        "cmp $0x505, %rsi; mov $5, %ecx; jne 8f\n cmp $0x606, %rdi; mov $6, %ecx; jne 8f\n"
        "cmp $0x707, %rbp; mov $7, %ecx; jne 8f\n cmp $0x808, %r8; mov $8, %ecx; jne 8f\n"
        "cmp $0x909, %r9; mov $9, %ecx; jne 8f\n cmp $0xa0a, %r10; mov $10, %ecx; jne 8f\n"
        "cmp $0xb0b, %r11; mov $11, %ecx; jne 8f\n cmp $0xc0c, %r12; mov $12, %ecx; jne 8f\n"
        "cmp $0xd0d, %r13; mov $13, %ecx; jne 8f\n cmp $0xe0e, %r14; mov $14, %ecx; jne 8f\n"
        "cmp $0xf0f, %r15; mov $15, %ecx; jne 8f\n"
        "mov 8(%rsp), %rdi\n"
        "movups (%rdi), %xmm2; pcmpeqq %xmm0, %xmm2; movmskpd %xmm2, %eax; cmp $3, %eax; mov $16, %ecx; jne 8f\n"
        "movups 16(%rdi), %xmm2; pcmpeqq %xmm1, %xmm2; movmskpd %xmm2, %eax; cmp $3, %eax; mov $17, %ecx; jne 8f\n"
        "movups 32(%rdi), %xmm2; pcmpeqq %xmm7, %xmm2; movmskpd %xmm2, %eax; cmp $3, %eax; mov $18, %ecx; jne 8f\n"
        "movups 48(%rdi), %xmm2; pcmpeqq %xmm15, %xmm2; movmskpd %xmm2, %eax; cmp $3, %eax; mov $19, %ecx; jne 8f\n"
        "xor %ecx, %ecx\n"
        "8: mov %rcx, %rax; add $16, %rsp\n"
        "pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        "9: mov $20, %ecx; jmp 8b\n");
}
static const uint64_t pattern[8] = {1, 2, 3, 4, 0x1234567812345678, ~0ul, 7, 8};
static long bad, rounds;
static volatile int stop;
__attribute__((unused)) static void *loop(void *a) {
    while (!stop) {
        long r = round_of_registers(pattern, 200);
        if (r) {
            fprintf(stderr, "register %ld is wrong\n", r);
            __atomic_add_fetch(&bad, 1, __ATOMIC_RELAXED);
        }
        __atomic_add_fetch(&rounds, 1, __ATOMIC_RELAXED);
    }
    return a;
}
static void every(int microseconds) {
    struct sigaction sa = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    sigaction(SIGALRM, &sa, 0);
    sigaction(SIGUSR1, &sa, 0);
    struct itimerval it = {{0, microseconds}, {0, microseconds}};
    setitimer(ITIMER_REAL, &it, 0);
}
