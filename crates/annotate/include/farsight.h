/* Progress points for farsight causal, for C and C++.
 *
 *   FARSIGHT_PROGRESS;               a visit of this place, named after file and line
 *   FARSIGHT_PROGRESS_NAMED("x");    a visit of the point x
 *   FARSIGHT_BEGIN("x");             something that takes time begins ...
 *   FARSIGHT_END("x");               ... and ends
 *
 * A program that is not profiled pays one load and one comparison. The ABI is that of coz.h: programs annotated for
 * Coz need no change. Nothing to link (on glibc before 2.34: -ldl). */
#ifndef FARSIGHT_H
#define FARSIGHT_H

#include <dlfcn.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  size_t count;
  size_t backoff;
} farsight_counter;

static inline farsight_counter *farsight_look_up(int kind, const char *name) {
  typedef farsight_counter *(*get_counter)(int, const char *);
  union {
    void *object;
    get_counter function;
  } found;
  static farsight_counter nobody;
  farsight_counter *counter = NULL;
  found.object = dlsym(NULL, "_coz_get_counter"); /* NULL is RTLD_DEFAULT */
  if (found.object != NULL) counter = found.function(kind, name);
  return counter != NULL ? counter : &nobody;
}

#ifdef __cplusplus
}
#endif

#define FARSIGHT_VISIT(kind, name)                                                           \
  do {                                                                                       \
    static farsight_counter *farsight_counter_;                                              \
    farsight_counter *farsight_found_ = __atomic_load_n(&farsight_counter_, __ATOMIC_RELAXED); \
    if (farsight_found_ == NULL) {                                                           \
      farsight_found_ = farsight_look_up((kind), (name));                                    \
      __atomic_store_n(&farsight_counter_, farsight_found_, __ATOMIC_RELAXED);               \
    }                                                                                        \
    __atomic_add_fetch(&farsight_found_->count, 1, __ATOMIC_RELAXED);                        \
  } while (0)

#define FARSIGHT_STRING_(x) #x
#define FARSIGHT_STRING(x) FARSIGHT_STRING_(x)
#define FARSIGHT_PROGRESS FARSIGHT_VISIT(1, __FILE__ ":" FARSIGHT_STRING(__LINE__))
#define FARSIGHT_PROGRESS_NAMED(name) FARSIGHT_VISIT(1, name)
#define FARSIGHT_BEGIN(name) FARSIGHT_VISIT(2, name)
#define FARSIGHT_END(name) FARSIGHT_VISIT(3, name)

#endif
