/* The three calls of the vsyscall page, at the fixed addresses where static programs of old find them.
 * Answer: each agrees with the system call. (Kernels without the page end the program natively too.) */
//@ stdout: time 1, gettimeofday 1, getcpu 1
#include "../check.h"
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

int main(void) {
    long (*at_time)(long *) = (long (*)(long *))0xffffffffff600400;
    int (*at_gettimeofday)(struct timeval *, void *) = (int (*)(struct timeval *, void *))0xffffffffff600000;
    int (*at_getcpu)(unsigned *, unsigned *, void *) = (int (*)(unsigned *, unsigned *, void *))0xffffffffff600800;
    struct timeval tv = {0, -1};
    long seen = 0, before = syscall(SYS_time, 0), now = at_time(&seen);
    int got = at_gettimeofday(&tv, 0);
    unsigned cpu = 12345, node = 12345;
    int where = at_getcpu(&cpu, &node, 0);
    printf("time %d, gettimeofday %d, getcpu %d\n", now == seen && now >= before && now - before < 60,
           got == 0 && tv.tv_sec >= now && tv.tv_usec >= 0 && tv.tv_usec < 1000000,
           where == 0 && cpu < 12345 && node < 12345);
    return 0;
}
