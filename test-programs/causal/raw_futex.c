/* Two threads take turns, and wait by system calls of their own that no library sees.
 * Arguments: rounds, steps of the first, steps of the second. */
#include "causal.h"
#include <linux/futex.h>
#include <sys/syscall.h>
static uint64_t rounds, first_steps, second_steps;
static int turn; /* whose it is: 0 or 1 */
static point_t *p;
static long futex(int *word, int operation, int value) {
  long result;
  register long timeout __asm__("r10") = 0;
  __asm__ volatile("syscall" : "=a"(result) : "0"(SYS_futex), "D"(word), "S"(operation), "d"(value), "r"(timeout)
                   : "rcx", "r11", "memory");
  return result;
}
static void wait_for(int mine) {
  while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != mine) futex(&turn, FUTEX_WAIT_PRIVATE, !mine);
}
static void hand_over(int other) {
  __atomic_store_n(&turn, other, __ATOMIC_RELEASE);
  futex(&turn, FUTEX_WAKE_PRIVATE, 1);
}
static void *first(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    wait_for(0);
    SPIN(first_steps); /* TARGET first */
    hand_over(1);
  }
  return x;
}
static void *second(void *x) {
  for (uint64_t i = 0; i < rounds; i++) {
    wait_for(1);
    SPIN(second_steps); /* TARGET second */
    VISIT(p);
    hand_over(0);
  }
  return x;
}
int main(int argc, char **argv) {
  rounds = ARGUMENT(1, 2000), first_steps = ARGUMENT(2, 3000000), second_steps = ARGUMENT(3, 3000000);
  p = point(1, "round");
  pthread_t a, b;
  double start = now();
  pthread_create(&a, 0, first, 0), pthread_create(&b, 0, second, 0);
  pthread_join(a, 0), pthread_join(b, 0);
  REPORT(start, rounds);
}
