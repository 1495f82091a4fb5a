/* How the program is linked: no symbols at all. Threads, TLS, stdio, malloc, a qsort callback and
 * a constructor work from the first instruction on.
 * Answer: below. */
//@ flags: -s -pthread
//@ stdout: constructor first
//@ stdout: sorted 0 1 2 3 4 5 6 7 8 9
//@ stdout: threads 45
#include "image.h"
