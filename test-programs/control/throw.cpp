/* C++ exceptions: 20,000 throws through 10 frames with destructors, rethrow, nested, across a qsort callback.
 * Answer: below. */
//@ stdout: caught 20000, destroyed 200000, rethrown 2000, through C 100
//@ repeat: 2
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
static long destroyed;
struct Guard {
    ~Guard() { destroyed++; }
};
__attribute__((noinline)) static void deep(int n, int v) {
    Guard g;
    if (n == 0) throw std::runtime_error(std::to_string(v));
    deep(n - 1, v);
    __asm__ volatile("" ::: "memory");
}
static int thrower(const void *, const void *) { throw 5; }
int main() {
    int caught = 0, rethrown = 0, through_c = 0;
    for (int i = 0; i < 20000; i++) try {
            deep(9, i);
        } catch (const std::exception &e) {
            caught += std::atoi(e.what()) == i;
        }
    for (int i = 0; i < 2000; i++) try {
            try {
                throw i;
            } catch (int) {
                throw;
            }
        } catch (int v) {
            rethrown += v == i;
        }
    for (int i = 0; i < 100; i++) try {
            int a[3] = {3, 2, 1};
            qsort(a, 3, sizeof *a, thrower);
        } catch (int v) {
            through_c += v == 5;
        }
    printf("caught %d, destroyed %ld, rethrown %d, through C %d\n", caught, destroyed, rethrown, through_c);
}
