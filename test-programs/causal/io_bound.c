/* A sleep, which stands for a device, and some computing, one after the other. Arguments: rounds, steps, microseconds. */
#include "causal.h"
int main(int argc, char **argv) {
  uint64_t rounds = ARGUMENT(1, 8000), steps = ARGUMENT(2, 1600000), us = ARGUMENT(3, 1000);
  point_t *p = point(1, "round");
  double start = now();
  for (uint64_t i = 0; i < rounds; i++) {
    SPIN(steps); /* TARGET computing */
    struct timespec t = {0, (long)us * 1000};
    nanosleep(&t, 0);
    VISIT(p);
  }
  REPORT(start, rounds);
}
