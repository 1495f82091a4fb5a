/* Nanoseconds of CPU time of an uncontended pair of lock and unlock, in a program that has a second thread. */
#include "causal.h"
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *sleeper(void *x) {
  pause();
  return x;
}
int main(void) {
  enum { PAIRS = 5000000 };
  pthread_t t;
  pthread_create(&t, 0, sleeper, 0);
  double start = cpu();
  for (int i = 0; i < PAIRS; i++) {
    pthread_mutex_lock(&lock);
    pthread_mutex_unlock(&lock);
  }
  printf("%.2f\n", (cpu() - start) / PAIRS * 1e9);
}
