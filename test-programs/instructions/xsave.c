/* xsave, xsavec and xrstor of the full mask keep the program's vector state; the area's header is as the processor
 * writes it. Answer: below. */
//@ flags: -mavx
//@ cpu: avx
//@ stdout: xsave 1, xsavec 1, header 1, init 1
#include "micro.h"
#include <immintrin.h>
static unsigned char area[16384] __attribute__((aligned(64)));
int main(void) {
    int plain = 1, compact = 1, header = 1, init = 1;
    for (int i = 0; i < LAPS; i++) {
        __m256i v = _mm256_set1_epi32(i), w;
        memset(area, 0, sizeof area);
        __asm__ volatile("vmovdqu %2, %%ymm5; mov $-1, %%eax; mov $-1, %%edx; xsave64 %1; vpxor %%xmm5,%%xmm5,%%xmm5; mov $-1, "
                         "%%eax; mov $-1, %%edx; xrstor64 %1; vmovdqu %%ymm5, %0"
                         : "=m"(w), "+m"(area) : "m"(v) : "rax", "rdx", "xmm5");
        plain &= memcmp(&v, &w, 32) == 0;
        header &= (area[512] & 6) == 6 && memcmp(area + 160 + 5 * 16, &v, 16) == 0;
        memset(area, 0, sizeof area);
        __asm__ volatile("vmovdqu %2, %%ymm9; mov $7, %%eax; xor %%edx, %%edx; xsavec64 %1; vzeroall; mov $7, %%eax; xor %%edx, "
                         "%%edx; xrstor64 %1; vmovdqu %%ymm9, %0"
                         : "=m"(w), "+m"(area) : "m"(v) : "rax", "rdx", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5",
                           "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
        compact &= memcmp(&v, &w, 32) == 0;
        memset(area, 0, sizeof area);
        __asm__ volatile("vmovdqu %2, %%ymm5; mov $7, %%eax; xor %%edx, %%edx; xrstor64 %1; vmovdqu %%ymm5, %0"
                         : "=m"(w), "+m"(area) : "m"(v) : "rax", "rdx", "xmm5");
        __m256i zero = _mm256_setzero_si256();
        init &= memcmp(&zero, &w, 32) == 0;
        unsigned csr = 0x1f80;
        __asm__ volatile("ldmxcsr %0" ::"m"(csr));
    }
    SHOW("xsave %d, xsavec %d, header %d, init %d", plain, compact, header, init);
    return 0;
}
