// Planned CPU time: what these programs plan does not depend on other load on the machine.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double clock_of(clockid_t which) {
    struct timespec t;
    clock_gettime(which, &t);
    return t.tv_sec + t.tv_nsec * 1e-9;
}

static double now(void) { return clock_of(CLOCK_THREAD_CPUTIME_ID); }

__attribute__((noinline)) uint64_t burn(double seconds) {
    uint64_t x = 1;
    for (double end = now() + seconds; now() < end;)
        for (int i = 0; i < 2000; i++) x = x * 6364136223846793005ull + 1442695040888963407ull;
    return x;
}

#define ARGUMENT(i, otherwise) (argc > (i) ? atof(argv[i]) : (otherwise))
