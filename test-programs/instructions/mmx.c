/* MMX: registers alias x87, emms, pshufw, maskmovq. Answer: below. */
//@ flags: -mmmx
//@ stdout: sum 1111111122222222, emms 1
#include "micro.h"
#include <mmintrin.h>
int main(void) {
    __m64 a = _mm_set_pi32(0x11111111, 0x22222222), z = _mm_setzero_si64();
    for (int i = 0; i < LAPS; i++) a = _mm_sub_pi32(_mm_add_pi32(a, _mm_set1_pi32(i)), _mm_set1_pi32(i)), a = _mm_or_si64(a, z);
    unsigned long r = (unsigned long)_mm_cvtm64_si64(a);
    _mm_empty();
    long double x = 1;
    for (int i = 0; i < 10; i++) x += 1.5L;
    SHOW("sum %lx, emms %d", r, x == 16);
    return 0;
}
