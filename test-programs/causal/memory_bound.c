/* One thread chases pointers through memory, the other computes; both are needed for a round.
 * Arguments: rounds, pointers followed, steps. */
#include "causal.h"
enum { CELLS = 1 << 20 };
static uint32_t next[CELLS];
static pthread_barrier_t barrier;
static uint64_t rounds, follow, steps;
static volatile uint32_t sink;
static point_t *p;
static void *chase(void *x) {
  uint32_t at = 0;
  for (uint64_t i = 0; i < rounds; i++) {
    for (uint64_t k = follow; k; k--) at = next[at]; /* TARGET memory */
    sink = at;
    pthread_barrier_wait(&barrier);
    VISIT(p);
  }
  return x;
}
static void *compute(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(steps); /* TARGET computing */
    pthread_barrier_wait(&barrier);
  }
  return x;
}
int main(int argc, char **argv) {
  rounds = ARGUMENT(1, 4000), follow = ARGUMENT(2, 60000), steps = ARGUMENT(3, 1000000);
  for (uint32_t i = 0; i < CELLS; i++) next[i] = (uint32_t)((i * 2654435761u + 12345u) % CELLS);
  p = point(1, "round");
  pthread_barrier_init(&barrier, 0, 2);
  double start = now();
  pthread_t s, t;
  pthread_create(&s, 0, chase, 0), pthread_create(&t, 0, compute, 0);
  pthread_join(s, 0), pthread_join(t, 0);
  REPORT(start, rounds);
}
