/* AVX2 gathers with masks, vmaskmov loads and stores next to an inaccessible page, maskmovdqu.
 * Masked-off lanes touch nothing. Answer: below. */
//@ flags: -mavx2
//@ cpu: avx2
//@ stdout: gather 1, masked gather 1, maskload 1, maskstore 1, maskmovdqu 1
#include "micro.h"
#include <immintrin.h>
#include <sys/mman.h>
int main(void) {
    int g = 1, mg = 1, ml = 1, ms = 1, mv = 1;
    int *p = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect((char *)p + 4096, 4096, PROT_NONE);
    for (int i = 0; i < 1024; i++) p[i] = i * 3;
    for (int lap = 0; lap < LAPS; lap++) {
        __m256i idx = _mm256_setr_epi32(1, 1000, 3, 4, 500, 6, 1023, 8);
        int out[8];
        _mm256_storeu_si256((void *)out, _mm256_i32gather_epi32(p, idx, 4));
        g &= out[0] == 3 && out[1] == 3000 && out[6] == 1023 * 3 && out[7] == 24;
        __m256i wild = _mm256_setr_epi32(1, 2000, 3, 1 << 28, 5, 6, 7, 8), mask = _mm256_setr_epi32(-1, 0, -1, 0, -1, -1, -1, -1);
        _mm256_storeu_si256((void *)out, _mm256_mask_i32gather_epi32(_mm256_set1_epi32(9), p, wild, mask, 4));
        mg &= out[0] == 3 && out[1] == 9 && out[3] == 9 && out[7] == 24;
        __m256i tail = _mm256_setr_epi32(-1, -1, -1, 0, 0, 0, 0, 0);
        _mm256_storeu_si256((void *)out, _mm256_maskload_epi32(p + 1021, tail));
        ml &= out[0] == 1021 * 3 && out[2] == 1023 * 3 && out[3] == 0;
        _mm256_maskstore_epi32(p + 1021, tail, _mm256_set1_epi32(lap));
        ms &= p[1020] == 1020 * 3 && p[1021] == lap && p[1023] == lap;
        for (int i = 1021; i < 1024; i++) p[i] = i * 3;
        char text[17] = "0123456789abcdef";
        _mm_maskmoveu_si128(_mm_set1_epi8('x'), _mm_set1_epi16((short)0x80), text);
        mv &= !memcmp(text, "x1x3x5x7x9xbxdxf", 16);
    }
    SHOW("gather %d, masked gather %d, maskload %d, maskstore %d, maskmovdqu %d", g, mg, ml, ms, mv);
    return 0;
}
