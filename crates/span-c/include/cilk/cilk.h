/* Cilk for compilers that do not know it: compile with `farsight cc` or `farsight c++`, which rewrite these words.
 * Compiled with any other compiler, the program is its serial elision. */
#ifndef FARSIGHT_CILK_H
#define FARSIGHT_CILK_H
#ifdef FARSIGHT_CILK
#include <farsight/cilk_rt.h>
#define cilk_spawn _Cilk_spawn
#define cilk_sync _Cilk_sync
#define cilk_for _Cilk_for
#define cilk_scope _Cilk_scope
#else
#define cilk_spawn
#define cilk_sync
#define cilk_for for
#define cilk_scope
#endif
/* A serial execution needs no views: a reducer is its own value. */
#define cilk_reducer(...)
#define _Hyperobject
#endif
