/* What the programs in this folder share: work of a known amount, arguments, progress points.
 *
 * Work is a loop in one line of inline assembly, so that it takes time in proportion to `steps`, whatever the compiler and
 * the alignment, and all its samples fall on the line that calls SPIN. Each turn is four steps, a multiplication and a
 * decrement that wait for each other: it leaves the core so idle that it takes no longer when a neighbour computes on the
 * other half of the core. (A loop of decrements alone is one taken jump per cycle, all that both halves have together.)
 * Programs print the wall time per unit of progress, which is the truth when a cost is really cut; how fast the
 * machine was meanwhile, as the clock ticks of a step, because neighbours and hypervisors change that by tens of
 * percent; and the CPU time per unit, which says what a profiler costs. */
#ifndef CAUSAL_H
#define CAUSAL_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t spun_ticks, spun_steps;
#define SPIN(steps) do { uint64_t n_ = (steps) / 4 + 1, one_ = 1, all_ = 4 * n_, ticks_ = __builtin_ia32_rdtsc(); \
  __asm__ volatile(".p2align 6\n1: imul %1, %0\n dec %0\n jnz 1b" : "+r"(n_) : "r"(one_) : "cc"); \
  __atomic_add_fetch(&spun_ticks, __builtin_ia32_rdtsc() - ticks_, __ATOMIC_RELAXED); \
  __atomic_add_fetch(&spun_steps, all_, __ATOMIC_RELAXED); } while (0)

typedef struct { size_t count, backoff; } point_t;

__attribute__((unused)) static point_t *point(int type, const char *name) {
  point_t *(*get)(int, const char *) = (point_t * (*)(int, const char *)) dlsym(RTLD_DEFAULT, "_coz_get_counter");
  static point_t nowhere;
  point_t *found = get ? get(type, name) : 0;
  return found ? found : &nowhere;
}
#define VISIT(p) __atomic_add_fetch(&(p)->count, 1, __ATOMIC_RELAXED)

__attribute__((unused)) static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

__attribute__((unused)) static double cpu(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return t.tv_sec + t.tv_nsec / 1e9;
}

/* Argument i as a number, or a default. */
#define ARGUMENT(i, value) (argc > (i) ? strtoull(argv[i], 0, 10) : (value))
#define REPORT(start, units) printf("%.0f ns per unit, %.6f ticks per step, %.0f ns of CPU time per unit\n", \
  (now() - (start)) / (units) * 1e9, (double)spun_ticks / spun_steps, cpu() / (units) * 1e9)
#endif
