/* A producer and a consumer with a bounded queue between them (mutex, two conditions). The consumer takes longer.
 * Arguments: items, steps of the producer, steps of the consumer. */
#include "causal.h"
enum { CAPACITY = 8 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER, emptied = PTHREAD_COND_INITIALIZER;
static uint64_t queued, items, producer_steps, consumer_steps;
static point_t *p;
static void *produce(void *x) {
  for (uint64_t i = 0; i < items; i++) {
    SPIN(producer_steps); /* TARGET producer */
    pthread_mutex_lock(&lock);
    while (queued == CAPACITY) pthread_cond_wait(&emptied, &lock);
    queued++;
    pthread_cond_signal(&filled);
    pthread_mutex_unlock(&lock);
  }
  return x;
}
static void *consume(void *x) {
  for (uint64_t i = 0; i < items; i++) {
    pthread_mutex_lock(&lock);
    while (queued == 0) pthread_cond_wait(&filled, &lock);
    queued--;
    pthread_cond_signal(&emptied);
    pthread_mutex_unlock(&lock);
    SPIN(consumer_steps); /* TARGET consumer */
    VISIT(p);
  }
  return x;
}
int main(int argc, char **argv) {
  items = ARGUMENT(1, 100000);
  producer_steps = ARGUMENT(2, 240000), consumer_steps = ARGUMENT(3, 400000);
  p = point(1, "item");
  double start = now();
  pthread_t s, t;
  pthread_create(&s, 0, produce, 0), pthread_create(&t, 0, consume, 0);
  pthread_join(s, 0), pthread_join(t, 0);
  REPORT(start, items);
}
