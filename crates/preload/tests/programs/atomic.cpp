// C++20 waits, which go through syscall().
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <semaphore>
#include <thread>

int main() {
    std::atomic<int> turn{0};
    std::counting_semaphore<4> tokens{0};
    std::timed_mutex timed;
    std::condition_variable condition;
    std::mutex mutex;
    std::thread other([&] {
        for (int i = 0; i < 50; i++) {
            turn.wait(0);
            turn = 0;
            turn.notify_one();
        }
        tokens.acquire();
    });
    for (int i = 0; i < 50; i++) {
        turn = 1;
        turn.notify_one();
        turn.wait(1);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    tokens.release();
    other.join();
    std::unique_lock lock(mutex);
    auto status = condition.wait_for(lock, std::chrono::milliseconds(2));
    printf("%d %d\n", timed.try_lock_for(std::chrono::milliseconds(1)), status == std::cv_status::timeout);
}
