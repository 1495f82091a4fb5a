/* For programs that include the serial elision by name. */
#include <cilk/cilk.h>
