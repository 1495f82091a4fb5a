/* Requests of known length with pauses between them: half of the time one is in flight. The progress is the latency.
 * Arguments: requests, steps of a request, steps between. */
#include "causal.h"
int main(int argc, char **argv) {
  uint64_t requests = ARGUMENT(1, 40000), in_request = ARGUMENT(2, 200000), between = ARGUMENT(3, 200000);
  point_t *begin = point(2, "request"), *end = point(3, "request");
  double start = now();
  for (uint64_t i = 0; i < requests; i++) {
    VISIT(begin);
    SPIN(in_request); /* TARGET request */
    VISIT(end);
    SPIN(between); /* TARGET between */
  }
  REPORT(start, requests);
}
