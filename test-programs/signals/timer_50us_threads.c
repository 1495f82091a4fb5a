/* A timer at 50 microseconds and a pthread_kill storm against three register-checking threads.
 * Answer: no bad round in 20,000 signals. */
//@ flags: -pthread -msse4.1
//@ stdout: bad 0, each thread went on 1
//@ repeat: 3
#include "timer_registers.h"
int main(void) {
    pthread_t t[3];
    every(50);
    for (int i = 0; i < 3; i++) CHECK(pthread_create(&t[i], 0, loop, 0) == 0);
    while (signals < 20000)
        for (int i = 0; i < 3; i++) pthread_kill(t[i], SIGUSR1);
    stop = 1;
    for (int i = 0; i < 3; i++) pthread_join(t[i], 0);
    printf("bad %ld, each thread went on %d\n", bad, rounds > 3);
    return 0;
}
