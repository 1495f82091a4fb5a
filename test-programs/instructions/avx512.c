/* AVX-512: zmm0-31 and k0-7 across system calls and signals; masked, compressing and scattering accesses beside an
 * inaccessible page. Answer: below. */
//@ flags: -mavx512f -mavx512vl -mavx512bw
//@ cpu: avx512bw
//@ stdout: state 1, masked load 1, masked store 1, compress 1, scatter 1
#include "micro.h"
#include <immintrin.h>
#include <signal.h>
#include <sys/mman.h>
static void on_usr1(int s) {
    (void)s;
    __asm__ volatile("vpxorq %%zmm31, %%zmm31, %%zmm31; kxorq %%k5, %%k5, %%k5; vzeroall" ::: "memory");
}
int main(void) {
    signal(SIGUSR1, on_usr1);
    int state = 1, ml = 1, ms = 1, co = 1, sc = 1;
    int *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect((char *)p + 4096, 4096, PROT_NONE);
    long pid = getpid();
    for (int lap = 0; lap < 200; lap++) {
        __m512i v = _mm512_set1_epi32(lap + 1), w, x;
        unsigned long k = 0x123456789abcdef0 + lap, k2 = 0;
        __asm__ volatile("vmovdqu64 %3, %%zmm31; vmovdqu64 %3, %%zmm3; kmovq %4, %%k5; mov $62, %%eax; mov %5, %%rdi; mov $10, %%esi; "
                         "syscall; vmovdqu64 %%zmm31, %0; vmovdqu64 %%zmm3, %1; kmovq %%k5, %2"
                         : "=m"(w), "=m"(x), "=r"(k2) : "m"(v), "r"(k), "r"(pid)
                         : "rax", "rcx", "rdi", "rsi", "r11", "xmm3", "memory");
        state &= !memcmp(&v, &w, 64) && !memcmp(&v, &x, 64) && k == k2;
        for (int i = 0; i < 1024; i++) p[i] = i;
        int out[16];
        _mm512_storeu_si512(out, _mm512_maskz_loadu_epi32(7, p + 1021));
        ml &= out[0] == 1021 && out[2] == 1023 && out[3] == 0;
        _mm512_mask_storeu_epi32(p + 1021, 7, v);
        ms &= p[1020] == 1020 && p[1023] == lap + 1;
        _mm512_mask_compressstoreu_epi32(p + 1022, 0x8001, _mm512_setr_epi32(5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 6));
        co &= p[1022] == 5 && p[1023] == 6;
        _mm512_mask_i32scatter_epi32(p, 5, _mm512_setr_epi32(10, 1 << 28, 1023, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), v, 4);
        sc &= p[10] == lap + 1 && p[1023] == lap + 1 && p[0] == 0;
    }
    SHOW("state %d, masked load %d, masked store %d, compress %d, scatter %d", state, ml, ms, co, sc);
    return 0;
}
