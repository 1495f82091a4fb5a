/* An uncaught exception: terminate prints what it was and aborts.
 * Answer: the message on stderr, killed by SIGABRT. */
//@ signal: SIGABRT
//@ stderr-has: what():  nobody wants me
#include <stdexcept>
int main() { throw std::runtime_error("nobody wants me"); }
