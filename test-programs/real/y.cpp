/* For C++ compilers: templates, virtual functions, the standard library. */
#include <algorithm>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Shape {
    virtual ~Shape() = default;
    virtual double area() const = 0;
};
struct Square : Shape {
    double s;
    explicit Square(double x) : s(x) {}
    double area() const override { return s * s; }
};
int main() {
    std::vector<std::unique_ptr<Shape>> v;
    for (int i = 0; i < 10; i++) v.push_back(std::make_unique<Square>(i));
    std::map<std::string, double> m;
    for (auto &x : v) m[std::to_string(x->area())] += x->area();
    std::sort(v.begin(), v.end(), [](auto &a, auto &b) { return a->area() > b->area(); });
    for (auto &[k, w] : m) std::cout << k << ' ' << w << '\n';
}
