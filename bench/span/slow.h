/* A piece is done SLOW times over, to be really made faster by `cargo xtask bench span predict`. The compiler does not know how
   often: the code is the same, and only what it does differs. */
#ifndef SLOW
#define SLOW 1
#endif
static inline int slow_times(void) {
    int times = SLOW;
    __asm__ volatile("" : "+r"(times));
    return times;
}
#define AGAIN for (int again = slow_times(); again > 0; again--, ({ __asm__ volatile("" ::: "memory"); }))
