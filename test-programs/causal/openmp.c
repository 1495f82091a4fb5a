/* Rounds of an OpenMP loop over one piece of work per thread, the first of them longer.
 * Arguments: rounds, steps of the first thread, steps of the others, threads. */
#include "causal.h"
#include <omp.h>
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 1000), slow = ARGUMENT(2, 6000000), other = ARGUMENT(3, 4000000);
  int threads = (int)ARGUMENT(4, 2);
  point_t *p = point(1, "round");
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
