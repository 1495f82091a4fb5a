/* A piece is done SLOW times over, to be really made faster by `cargo xtask bench span --predict`. */
#ifndef SLOW
#define SLOW 1
#endif
#define AGAIN for (int again = 0; again < SLOW; again++, ({ __asm__ volatile("" ::: "memory"); }))
