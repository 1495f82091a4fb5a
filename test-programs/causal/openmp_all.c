/* Every way in which threads of OpenMP meet: prints what must not depend on being profiled. With -DLIBRARY the loop is in
 * a library that main loads for itself alone, so that the OpenMP runtime is in nobody else's scope.
 * Arguments: rounds, or the library and rounds. */
#include "causal.h"
#ifndef LOADER
#include <omp.h>
static long tree(int depth) {
  long left = 0, right = 0;
  if (depth == 0) return 1;
#pragma omp task shared(left) firstprivate(depth)
  left = tree(depth - 1);
#pragma omp task shared(right) firstprivate(depth)
  right = tree(depth - 1);
#pragma omp taskwait
  return left + right;
}
long rounds_of_all(uint64_t rounds) {
  point_t *p = point(1, "round");
  long sum = 0, in_order = 0;
  omp_lock_t lock;
  omp_nest_lock_t nest;
  omp_init_lock(&lock);
  omp_init_nest_lock(&nest);
  for (uint64_t i = 0; i < rounds; i++) {
#pragma omp parallel num_threads(3) reduction(+ : sum)
    {
      long copied = 0;
      SPIN(20000);
#pragma omp for schedule(dynamic, 2)
      for (int k = 0; k < 12; k++) sum += k;
#pragma omp sections
      {
#pragma omp section
        sum += 1;
#pragma omp section
        sum += 2;
      }
#pragma omp critical
      sum += 3;
#pragma omp critical(named)
      sum += 4;
      omp_set_lock(&lock);
      sum += 5;
      omp_unset_lock(&lock);
      omp_set_nest_lock(&nest);
      omp_set_nest_lock(&nest);
      sum += 6;
      omp_unset_nest_lock(&nest);
      omp_unset_nest_lock(&nest);
#pragma omp barrier
#pragma omp single copyprivate(copied)
      copied = 7;
      sum += copied;
#pragma omp for ordered
      for (int k = 0; k < 6; k++) {
#pragma omp ordered
        in_order = in_order * 3 % 1000003 + k;
      }
#pragma omp single
      {
        sum += tree(4);
#pragma omp taskloop shared(in_order)
        for (int k = 0; k < 8; k++) __atomic_add_fetch(&in_order, 1, __ATOMIC_RELAXED);
#pragma omp taskgroup
#pragma omp task depend(out : copied)
        SPIN(1000);
      }
    }
#pragma omp parallel for num_threads(2) schedule(guided) reduction(+ : sum)
    for (int k = 0; k < 100; k++) sum += k;
    VISIT(p);
  }
  omp_destroy_lock(&lock);
  omp_destroy_nest_lock(&nest);
  return sum + in_order;
}
#endif
#ifndef LIBRARY
int main(int argc, char **argv) {
#ifdef LOADER
  void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  long (*rounds_of_all)(uint64_t) = library ? (long (*)(uint64_t))dlsym(library, "rounds_of_all") : 0;
  if (!rounds_of_all) return printf("%s\n", dlerror()), 1;
  argc--, argv++;
#endif
  printf("%ld\n", rounds_of_all(ARGUMENT(1, 1000)));
}
#endif
