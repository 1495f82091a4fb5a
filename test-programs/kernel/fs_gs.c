/* Segment bases: fs through rdfsbase and arch_prctl agree; gs is the program's to set and read, per thread.
 * Answer: below. */
//@ flags: -pthread -mfsgsbase
//@ stdout: fs 1, gs by prctl 1, gs by instruction 1, load through gs 1, thread has its own 1, kept 1
//@ repeat: 3
#include "../check.h"
#include <asm/prctl.h>
#include <immintrin.h>
#include <pthread.h>
#include <sys/syscall.h>
static long words[4] = {11, 22, 33, 44};
static int own;
static long load_gs8(void) {
    long v;
    __asm__ volatile("mov %%gs:8, %0" : "=r"(v));
    return v;
}
static void *thread(void *a) {
    long other[2] = {5, 6};
    syscall(SYS_arch_prctl, ARCH_SET_GS, other);
    for (int i = 0; i < 1000; i++) own = load_gs8() == 6 && _readgsbase_u64() == (unsigned long)other;
    return a;
}
int main(void) {
    unsigned long fs, gs;
    syscall(SYS_arch_prctl, ARCH_GET_FS, &fs);
    int fs_ok = fs == _readfsbase_u64();
    CHECK(syscall(SYS_arch_prctl, ARCH_SET_GS, words) == 0);
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    int prctl_ok = gs == (unsigned long)words && _readgsbase_u64() == gs;
    _writegsbase_u64((unsigned long)(words + 2));
    syscall(SYS_arch_prctl, ARCH_GET_GS, &gs);
    int instr_ok = gs == (unsigned long)(words + 2);
    int load_ok = load_gs8() == 44;
    pthread_t t;
    CHECK(pthread_create(&t, 0, thread, 0) == 0);
    pthread_join(t, 0);
    printf("fs %d, gs by prctl %d, gs by instruction %d, load through gs %d, thread has its own %d, kept %d\n", fs_ok,
           prctl_ok, instr_ok, load_ok, own, load_gs8() == 44);
    return 0;
}
