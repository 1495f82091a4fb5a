/* A sample of SSE to SSE4.2, AES and carry-less multiply with memory operands, non-temporal stores, prefetch, clflush,
 * fences, pcmpestri, mxcsr rounding. Answer: a checksum, the same on every processor that has them. */
//@ flags: -msse4.2 -maes -mpclmul
//@ cpu: pclmulqdq
//@ stdout: checksum d1fe11819d000000 round 3 2 2
#include "micro.h"
#include <math.h>
#include <wmmintrin.h>
#include <nmmintrin.h>
int main(void) {
    static unsigned char m[4096] __attribute__((aligned(64)));
    for (int i = 0; i < 4096; i++) m[i] = (unsigned char)(i * 37 + (i >> 5));
    __m128i acc = _mm_set1_epi8(1);
    for (int lap = 0; lap < 50; lap++)
        for (int i = 0; i + 64 <= 4096; i += 16) {
            __m128i *p = (__m128i *)(m + i);
            acc = _mm_add_epi64(_mm_shuffle_epi8(acc, *p), _mm_aesenc_si128(acc, *p));
            acc = _mm_xor_si128(acc, _mm_clmulepi64_si128(acc, *p, 0x11));
            acc = _mm_alignr_epi8(acc, *p, 5);
            acc = _mm_blendv_epi8(acc, _mm_mullo_epi32(acc, *p), *p);
            _mm_stream_si128(p, _mm_sad_epu8(acc, *p));
            _mm_sfence();
            _mm_prefetch((char *)p + 256, _MM_HINT_T0);
            acc = _mm_insert_epi32(acc, _mm_cmpestri(acc, 12, *p, 9, _SIDD_CMP_RANGES), 2);
            if (i % 512 == 0) _mm_clflush(p);
            _mm_mfence(), _mm_lfence(), _mm_pause();
        }
    unsigned long r = (unsigned long)_mm_cvtsi128_si64(acc) ^ (unsigned long)_mm_extract_epi64(acc, 1);
    volatile double x = 2.5;
    int up, down, near = _mm_cvtsd_si32(_mm_set_sd(x));
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | 0x4000), up = _mm_cvtsd_si32(_mm_set_sd(x));
    _mm_setcsr((_mm_getcsr() & ~0x6000u) | 0x2000), down = _mm_cvtsd_si32(_mm_set_sd(x));
    SHOW("checksum %lx round %d %d %d", r, up, down, near);
    return 0;
}
