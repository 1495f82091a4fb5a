/* Rounds of an OpenMP loop over one piece of work per thread, the first of them longer.
 * Arguments: rounds, steps of the first thread, steps of the others, threads.
 * Each thread stays on a core of its own: who waits spins, and where the kernel has put two of them on one core it takes
 * hundreds of milliseconds to notice, in which the one that works waits for the one that waits. */
#include "causal.h"
#include <omp.h>
#include <sched.h>
/* The calling thread on the nth core that the program may use. */
static void stay_on(int n) {
  cpu_set_t all, one;
  sched_getaffinity(0, sizeof all, &all);
  CPU_ZERO(&one);
  n %= CPU_COUNT(&all);
  for (int core = 0; core < CPU_SETSIZE; core++)
    if (CPU_ISSET(core, &all) && n-- == 0) CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
}
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 1000), slow = ARGUMENT(2, 6000000), other = ARGUMENT(3, 4000000);
  int threads = (int)ARGUMENT(4, 2);
  point_t *p = point(1, "round");
  cpu_set_t all;
  sched_getaffinity(0, sizeof all, &all);
#pragma omp parallel num_threads(threads)
  {
    sched_setaffinity(0, sizeof all, &all); /* a runtime may have bound it already */
    stay_on(omp_get_thread_num());
  }
  double start = now();
  for (uint64_t i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(threads)
    {
      if (omp_get_thread_num() == 0)
        SPIN(slow); /* TARGET slow */
      else
        SPIN(other); /* TARGET other */
    }
    VISIT(p);
  }
  REPORT(start, rounds);
}
