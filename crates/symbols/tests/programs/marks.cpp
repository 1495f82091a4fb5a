// As marks.c, with what C++ adds: templates, methods, constructors, lambdas, exceptions.
#include <cstdio>
#include <stdexcept>
#include <vector>

#define MARK(number)                                                                                  \
    __asm__ volatile("1: nop\n\t.pushsection marks,\"aR\",@progbits\n\t.long 1b - .\n\t.long %c0\n\t" \
                     ".long %c1\n\t.popsection" ::"i"(__LINE__), "i"(number))

namespace shop {
template <typename T>
struct Box {
    T value;
    __attribute__((always_inline)) explicit Box(T v) : value(v) { MARK(1); }
    __attribute__((noinline)) T twice() const {
        MARK(2);
        return value + value;
    }
};

namespace {
__attribute__((noinline)) int hidden(int x) {
    MARK(3);
    if (x > 1000) throw std::runtime_error("too much");
    return x - 1;
}
}  // namespace

template <typename A, typename B>
__attribute__((noinline)) A mix(A a, B b) {
    Box<A> box(a); /* call constructor */
    return box.twice() + static_cast<A>(b) + hidden(3);
}
}  // namespace shop

int main(int argc, char **) {
    std::vector<int> v(10, argc);
    auto add = [&](int x) __attribute__((noinline)) {
        MARK(4);
        return v[x] + argc;
    };
    try {
        std::printf("%d %f\n", shop::mix(argc, 2.0) + add(3), shop::mix(1.5, argc));
        shop::hidden(argc + 2000);
    } catch (const std::exception &e) {
        MARK(5);
        std::puts(e.what());
    }
    return 0;
}
