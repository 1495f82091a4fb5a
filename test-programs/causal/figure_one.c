/* The two threads of figure 1, created anew in every round: a takes a little longer than b.
 * Making a faster gains until b takes longer; making b faster gains nothing.
 * Arguments: rounds, steps of a, steps of b. */
#include "causal.h"
static uint64_t a_steps, b_steps;
static void *a(void *x) {
  SPIN(a_steps); /* TARGET a */
  return x;
}
static void *b(void *x) {
  SPIN(b_steps); /* TARGET b */
  return x;
}
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 3000);
  a_steps = ARGUMENT(2, 6000000), b_steps = ARGUMENT(3, 3600000);
  point_t *p = point(1, "round");
  double start = now();
  for (uint64_t i = 0; i < rounds; i++) {
    pthread_t s, t;
    pthread_create(&s, 0, a, 0), pthread_create(&t, 0, b, 0);
    pthread_join(s, 0), pthread_join(t, 0);
    VISIT(p);
  }
  REPORT(start, rounds);
}
