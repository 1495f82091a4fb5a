/* More threads than cores that meet at a barrier; one of them has half as much again to do.
 * Arguments: rounds, steps of the slow one, steps of the others, threads. */
#include "causal.h"
static pthread_barrier_t barrier;
static uint64_t rounds, slow_steps, steps;
static point_t *p;
static void *slow(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(slow_steps); /* TARGET slow */
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) VISIT(p);
  }
  return x;
}
static void *other(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(steps); /* TARGET other */
    if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD) VISIT(p);
  }
  return x;
}
int main(int argc, char **argv) {
  rounds = ARGUMENT(1, 2000), slow_steps = ARGUMENT(2, 6000000), steps = ARGUMENT(3, 4000000);
  uint64_t threads = ARGUMENT(4, 2);
  p = point(1, "round");
  pthread_barrier_init(&barrier, 0, threads);
  pthread_t t[64];
  double start = now();
  for (uint64_t i = 0; i < threads && i < 64; i++) pthread_create(&t[i], 0, i ? other : slow, 0);
  for (uint64_t i = 0; i < threads && i < 64; i++) pthread_join(t[i], 0);
  REPORT(start, rounds);
}
