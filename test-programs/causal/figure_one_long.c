/* Figure 1 with two threads that live for the whole run and meet at a barrier after every round.
 * Arguments: rounds, steps of a, steps of b. */
#include "causal.h"
static pthread_barrier_t barrier;
static uint64_t rounds, a_steps, b_steps;
static point_t *p;
static void *a(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(a_steps); /* TARGET a */
    pthread_barrier_wait(&barrier);
    VISIT(p);
  }
  return x;
}
static void *b(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(b_steps); /* TARGET b */
    pthread_barrier_wait(&barrier);
  }
  return x;
}
int main(int argc, char **argv) {
  rounds = ARGUMENT(1, 4000), a_steps = ARGUMENT(2, 4000000), b_steps = ARGUMENT(3, 2400000);
  p = point(1, "round");
  pthread_barrier_init(&barrier, 0, 2);
  double start = now();
  pthread_t s, t;
  pthread_create(&s, 0, a, 0), pthread_create(&t, 0, b, 0);
  pthread_join(s, 0), pthread_join(t, 0);
  REPORT(start, rounds);
}
