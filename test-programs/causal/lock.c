/* Two threads, most of whose time is inside a lock. Kinds: mutex, spin, rwlock, semaphore.
 * Arguments: rounds of each thread, steps inside, steps outside, kind. */
#include "causal.h"
#include <semaphore.h>
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_spinlock_t spin;
static sem_t semaphore;
static char kind;
static uint64_t rounds, inside, outside;
static point_t *p;
static void take(void) {
  switch (kind) {
  case 's': pthread_spin_lock(&spin); break;
  case 'r': pthread_rwlock_wrlock(&rwlock); break;
  case 'p': sem_wait(&semaphore); break;
  default: pthread_mutex_lock(&mutex);
  }
}
static void give(void) {
  switch (kind) {
  case 's': pthread_spin_unlock(&spin); break;
  case 'r': pthread_rwlock_unlock(&rwlock); break;
  case 'p': sem_post(&semaphore); break;
  default: pthread_mutex_unlock(&mutex);
  }
}
static void *work(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    take();
    SPIN(inside); /* TARGET inside */
    give();
    SPIN(outside); /* TARGET outside */
    VISIT(p);
  }
  return x;
}
int main(int argc, char **argv) {
  rounds = ARGUMENT(1, 40000), inside = ARGUMENT(2, 200000), outside = ARGUMENT(3, 20000);
  const char *name = argc > 4 ? argv[4] : "mutex";
  kind = strcmp(name, "semaphore") ? name[0] : 'p';
  pthread_spin_init(&spin, 0), sem_init(&semaphore, 0, 1);
  p = point(1, "round");
  double start = now();
  pthread_t s, t;
  pthread_create(&s, 0, work, 0), pthread_create(&t, 0, work, 0);
  pthread_join(s, 0), pthread_join(t, 0);
  REPORT(start, 2 * rounds);
}
