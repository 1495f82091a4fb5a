/* Time through the vDSO and through system calls agree and go forward; getcpu answers.
 * Answer: below. */
//@ stdout: forward 1, agree 1, getcpu 1, time 1
#include "../check.h"
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
int main(void) {
    struct timespec a = {0}, b, c;
    int forward = 1, agree = 1;
    for (int i = 0; i < 20000; i++) {
        clock_gettime(CLOCK_MONOTONIC, &b);
        forward &= b.tv_sec > a.tv_sec || (b.tv_sec == a.tv_sec && b.tv_nsec >= a.tv_nsec);
        a = b;
    }
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &c);
    agree = c.tv_sec - b.tv_sec < 5 && c.tv_sec >= b.tv_sec;
    struct timeval tv;
    gettimeofday(&tv, 0);
    unsigned cpu = 9999;
    getcpu(&cpu, 0);
    printf("forward %d, agree %d, getcpu %d, time %d\n", forward, agree, cpu < 9999, labs(time(0) - tv.tv_sec) < 5);
    return 0;
}
