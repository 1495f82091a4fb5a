/* A timer at 300 microseconds against one thread: every register, flag and xmm keeps its value.
 * Answer: no bad round in 1500 signals. */
//@ flags: -pthread -msse4.1
//@ stdout: bad 0
//@ repeat: 3
#include "timer_registers.h"
int main(void) {
    every(300);
    while (signals < 1500) {
        if (round_of_registers(pattern, 200)) bad++;
    }
    printf("bad %ld\n", bad);
    return 0;
}
