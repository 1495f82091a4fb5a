/* C++ exceptions thrown in 4 threads at once, each caught in its own; std::async carries one across.
 * Answer: below. */
//@ flags: -pthread
//@ stdout: caught 8000, carried: over
//@ repeat: 5
#include <atomic>
#include <cstdio>
#include <future>
#include <stdexcept>
#include <thread>
#include <vector>
static std::atomic<int> caught;
static void work() {
    for (int i = 0; i < 2000; i++) try {
            throw std::logic_error("x");
        } catch (const std::logic_error &) {
            caught++;
        }
}
int main() {
    std::vector<std::thread> t;
    for (int i = 0; i < 4; i++) t.emplace_back(work);
    for (auto &x : t) x.join();
    auto f = std::async(std::launch::async, []() -> int { throw std::runtime_error("over"); });
    try {
        f.get();
    } catch (const std::exception &e) {
        printf("caught %d, carried: %s\n", caught.load(), e.what());
    }
}
