/* One thread, two lines: 70 % and 30 % of the time. Arguments: rounds, steps of the first, of the second. */
#include "causal.h"
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 40000), first = ARGUMENT(2, 280000), second = ARGUMENT(3, 120000);
  point_t *p = point(1, "round");
  double start = now();
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(first); /* TARGET first */
    SPIN(second); /* TARGET second */
    VISIT(p);
  }
  REPORT(start, rounds);
}
