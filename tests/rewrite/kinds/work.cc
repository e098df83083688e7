// C++ that throws through many frames, with virtual calls, strings, containers and function objects; the same every time.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>
struct shape { virtual ~shape() {} virtual double area() const = 0; };
struct square : shape { double a; explicit square(double x) : a(x) {} double area() const override { return a * a; } };
struct circle : shape { double r; explicit circle(double x) : r(x) {} double area() const override { return 3 * r * r; } };
struct guard { int &n; explicit guard(int &x) : n(x) { n++; } ~guard() { n--; } };
static int depth;
static int deep(int n)
{
    guard g(depth);
    if (n == 0) throw std::out_of_range("deep " + std::to_string(depth));
    return deep(n - 1) + n;
}
template <class T> static T fold(const std::vector<T> &v, std::function<T(T, T)> f)
{
    T s{};
    for (const T &x : v) s = f(s, x);
    return s;
}
int main()
{
    std::map<std::string, int> words;
    std::istringstream in("the cat sat on the mat and the dog sat on the cat");
    for (std::string w; in >> w;) words[w]++;
    for (auto &[w, n] : words) std::printf("%s %d\n", w.c_str(), n);
    int caught = 0;
    for (int i = 0; i < 30; i++) {
        try {
            deep(i % 9);
        } catch (const std::out_of_range &e) {
            caught += e.what()[5] - '0';
        }
    }
    std::printf("%d %d\n", caught, depth);
    std::vector<std::unique_ptr<shape>> shapes;
    for (int i = 0; i < 20; i++)
        if (i % 3) shapes.emplace_back(new square(i));
        else shapes.emplace_back(new circle(i));
    double area = 0;
    for (auto &s : shapes) area += s->area();
    std::vector<int> v(500);
    for (int i = 0; i < 500; i++) v[i] = i * 7919 % 503;
    std::sort(v.begin(), v.end(), [](int a, int b) { return a % 100 < b % 100 || (a % 100 == b % 100 && a < b); });
    std::printf("%g %d %d\n", area, v[250], fold<int>(v, [](int a, int b) { return a * 3 + b; }));
    try {
        std::string(3, 'x').at(5);
    } catch (const std::exception &e) {
        std::puts("caught");
    }
    return caught & 31;
}
