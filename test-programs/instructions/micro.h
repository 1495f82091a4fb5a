/* What the instruction tests share: each is one C file with its assembly inline, which prints what the machine left
 * behind, and names in its header what natively comes out. LAPS repeats make sure that linked code is tested too. */
#include "../check.h"
#include <cpuid.h>
#define LAPS 1000
#define SHOW(fmt, ...) printf(fmt "\n", __VA_ARGS__)
static inline unsigned long flags_now(void) {
    unsigned long f;
    __asm__ volatile("lea -128(%%rsp), %%rsp; pushfq; pop %0; lea 128(%%rsp), %%rsp" : "=r"(f));
    return f;
}
