/* C++ throw out of a SIGSEGV handler (non-call exceptions): the unwinder walks through the signal frame.
 * Answer: 1000 caught. */
//@ flags: -fnon-call-exceptions -fasynchronous-unwind-tables
//@ stdout: caught 1000, destroyed 1000
//@ repeat: 3
#include <csignal>
#include <cstdio>
#include <stdexcept>
static int destroyed;
struct Guard {
    ~Guard() { destroyed++; }
};
static void on_segv(int, siginfo_t *, void *) { throw std::runtime_error("fault"); }
__attribute__((noinline)) static int load(volatile int *p) {
    Guard g;
    __asm__("" : "+r"(p));
    return *p;
}
int main() {
    struct sigaction sa = {};
    sa.sa_sigaction = on_segv;
    sa.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &sa, nullptr);
    int caught = 0;
    for (int i = 0; i < 1000; i++) try {
            load(reinterpret_cast<int *>(16));
        } catch (const std::runtime_error &) {
            caught++;
        }
    printf("caught %d, destroyed %d\n", caught, destroyed);
}
