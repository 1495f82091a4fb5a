// Virtual calls, the standard library's containers and algorithms, and an exception through several frames.
#include "step.h"
#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

struct Base {
    virtual int f(int n) = 0;
    virtual ~Base() {}
};
struct Plain : Base {
    int f(int n) override { return n + 1; }
};
struct Text : Base {
    std::string s;
    int f(int n) override {
        s += std::to_string(n);
        return (int)s.size();
    }
};
struct Guard {
    int *count;
    ~Guard() { ++*count; }
};

__attribute__((noinline)) int thrower(int n, int *count) {
    Guard guard{count};
    if (n == 0)
        throw std::runtime_error("deep");
    return thrower(n - 1, count) + 1;
}

__attribute__((noinline)) int everything(int n) {
    int r = 0;
    std::vector<std::unique_ptr<Base>> shapes;
    shapes.emplace_back(new Plain);
    shapes.emplace_back(new Text);
    for (auto &shape : shapes)
        r += shape->f(n);
    std::vector<int> values;
    for (int i = 0; i < 30; i++)
        values.push_back((i * 37) % 31);
    std::sort(values.begin(), values.end(), [](int a, int b) { return a > b; });
    std::map<std::string, int> sums;
    for (int i = 0; i < 5; i++)
        sums["key" + std::to_string(i % 3)] += values[i];
    for (auto &[key, sum] : sums)
        r += sum + (int)key.size();
    int count = 0;
    try {
        r += thrower(5, &count);
    } catch (const std::exception &) {
        r += count;
    }
    return r;
}

int main() {
    farsight_step_begin();
    int r = everything(3);
    unsigned long wrong = farsight_step_end();
    printf("%d steps %lu wrong %lu landing %lu\n", r, farsight_steps(), wrong, farsight_landing());
    return wrong != 0;
}
