/* Two kinds of rounds, a tenth of a second of each at a time: a line that runs in one phase only is worth half of what
 * it is worth there. Arguments: rounds, steps of the first phase, of the second. */
#include "causal.h"
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 16000), first = ARGUMENT(2, 1000000), second = ARGUMENT(3, 1000000);
  point_t *p = point(1, "round");
  double start = now();
  for (uint64_t i = 0; i < rounds; i++) {
    if (i / 200 % 2 == 0) {
      SPIN(first); /* TARGET first */
    } else {
      SPIN(second); /* TARGET second */
    }
    VISIT(p);
  }
  REPORT(start, rounds);
}
