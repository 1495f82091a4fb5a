/* Work whose cost is known: so many steps of a loop that no compiler takes away. */
#pragma once

__attribute__((noinline)) static unsigned long spin(unsigned long steps) {
    unsigned long x = steps;
    for (unsigned long i = 0; i < steps; i++) {
        x = x * 6364136223846793005UL + 1;
        __asm__ volatile("" : "+r"(x));
    }
    return x;
}
