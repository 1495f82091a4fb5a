// Two threads that take turns: only one runs at a time, handed over by std::mutex and std::condition_variable, or with
// argument 4 "atomic" by C++20's atomic wait. Arguments: turns, steps of the first, of the second, kind.
#include "causal.h"
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
static std::mutex mutex;
static std::condition_variable changed;
static int turn;
static std::atomic<int> atomic_turn{0};
static bool by_atomic;
static void wait_for(int mine) {
  if (by_atomic) {
    for (int now; (now = atomic_turn.load()) != mine;) atomic_turn.wait(now);
  } else {
    std::unique_lock<std::mutex> held(mutex);
    changed.wait(held, [&] { return turn == mine; });
  }
}
static void hand_over(int to) {
  if (by_atomic) {
    atomic_turn.store(to), atomic_turn.notify_all();
  } else {
    std::lock_guard<std::mutex> held(mutex);
    turn = to, changed.notify_one();
  }
}
int main(int argc, char **argv) {
  uint64_t turns = ARGUMENT(1, 40000), first = ARGUMENT(2, 300000), second = ARGUMENT(3, 300000);
  by_atomic = argc > 4 && std::string(argv[4]) == "atomic";
  point_t *p = point(1, "turn");
  double start = now();
  std::thread other([&] {
    for (uint64_t i = 0; i < turns; i++) {
      wait_for(1);
      SPIN(second); /* TARGET second */
      VISIT(p);
      hand_over(0);
    }
  });
  for (uint64_t i = 0; i < turns; i++) {
    wait_for(0);
    SPIN(first); /* TARGET first */
    hand_over(1);
  }
  other.join();
  REPORT(start, turns);
}
