// Everything that could go wrong while samples strike: exceptions through several frames, libraries that come and go,
// children by fork and by exec, threads that come and go, signals on alternate stacks, deep recursion, longjmp. What
// is printed depends on the arguments alone: rounds (or, with a leading `t`, seconds; then only the check is printed).
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t signals_seen;
extern char **environ;

static uint64_t mix(uint64_t x) { return x * 6364136223846793005ull + 1442695040888963407ull; }

[[gnu::noinline]] uint64_t thrower(int depth, uint64_t x) {
    struct Guard {
        uint64_t &x;
        ~Guard() { x = mix(x); }
    } guard{x};
    if (depth == 0) throw std::runtime_error(std::to_string(x % 1000));
    return thrower(depth - 1, mix(x)) + 1;
}

[[gnu::noinline]] uint64_t exceptions(uint64_t x) {
    uint64_t sum = 0;
    for (int i = 0; i < 50; i++) try {
            sum += thrower(1 + i % 20, x + i);
        } catch (const std::exception &e) {
            sum += strtoull(e.what(), nullptr, 10);
        }
    return sum;
}

[[gnu::noinline]] uint64_t recursion(int depth, uint64_t x) {
    volatile char room[64];
    room[x & 63] = (char)x;
    if (depth == 0) return mix(x) + (room[x & 63] & 1);
    return mix(recursion(depth - 1, x + 1)) + 1;
}

[[gnu::noinline]] uint64_t jumps(uint64_t x) {
    jmp_buf out;
    volatile uint64_t sum = x;
    for (volatile int i = 0; i < 20; i++)
        if (setjmp(out) == 0) {
            sum = recursion(10, sum);
            longjmp(out, 1);
        }
    return sum;
}

[[gnu::noinline]] uint64_t libraries() {
    uint64_t sum = 0;
    for (const char *name : {"libz.so.1", "libm.so.6", "libutil.so.1"})
        if (void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
            if (auto cosine = (double (*)(double))dlsym(library, "cos"))
                for (int i = 0; i < 2000; i++) sum += (uint64_t)(1000 * cosine(i) + 1000);
            dlclose(library);
        }
    return sum;
}

[[gnu::noinline]] uint64_t children() {
    uint64_t sum = 0;
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(recursion(50, 1) & 63);
    waitpid(child, &status, 0);
    sum += WEXITSTATUS(status);
    char *words[] = {(char *)"true", nullptr};
    if (posix_spawnp(&child, "true", nullptr, nullptr, words, environ) == 0) {
        waitpid(child, &status, 0);
        sum += status;
    }
    child = vfork();
    if (child == 0) {
        execvp("true", words);
        _exit(127);
    }
    waitpid(child, &status, 0);
    return sum + status;
}

static void on_signal(int) {
    recursion(5, 7);
    signals_seen = signals_seen + 1;
}

[[gnu::noinline]] uint64_t signals() {
    uint64_t sum = 0;
    for (int i = 0; i < 50; i++) {
        raise(SIGUSR1);
        sum = recursion(20, sum);
    }
    return sum;
}

static void *churn(void *argument) {
    uint64_t x = (uint64_t)argument;
    stack_t stack = {};
    stack.ss_sp = malloc(64 << 10);
    stack.ss_size = 64 << 10;
    sigaltstack(&stack, nullptr);
    uint64_t sum = exceptions(x) + recursion(200, x) + jumps(x) + signals();
    stack.ss_flags = SS_DISABLE;
    sigaltstack(&stack, nullptr);
    free(stack.ss_sp);
    return (void *)sum;
}

int main(int argc, char **argv) {
    const char *amount = argc > 1 ? argv[1] : "20";
    bool timed = amount[0] == 't';
    double limit = atof(amount + timed);
    struct sigaction action = {};
    action.sa_handler = on_signal;
    action.sa_flags = SA_ONSTACK | SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    uint64_t all = 0, first = 0;
    time_t start = time(nullptr);
    long round = 0;
    bool same = true;
    for (; timed ? time(nullptr) - start < limit : round < limit; round++) {
        pthread_t threads[6];
        uint64_t sum = 0;
        pthread_attr_t small;
        pthread_attr_init(&small);
        pthread_attr_setstacksize(&small, 256 << 10);
        for (uint64_t i = 0; i < 6; i++) pthread_create(&threads[i], i & 1 ? &small : nullptr, churn, (void *)i);
        sum += libraries() + children() + recursion(20000, 3);
        for (pthread_t thread : threads) {
            void *result;
            pthread_join(thread, &result);
            sum += (uint64_t)result;
        }
        if (round == 0) first = sum;
        same &= sum == first;
        all = mix(all + sum);
    }
    if (timed) {
        fprintf(stderr, "%ld rounds\n", round);
        printf("%d %d\n", same, (long)signals_seen > 0);
    } else
        printf("%d %016lx\n", same, (unsigned long)all);
}
