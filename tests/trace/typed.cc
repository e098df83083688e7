// Values of types that are no plain numbers.
#include <complex>
#include <cstdio>
#include <string>
#include <string_view>
#define ALONE __attribute__((noipa))
enum color { RED, GREEN = 5, BLUE = -1 };
enum class wide : unsigned long { none, all = 0xffffffffffff };
struct flags { unsigned a : 3, b : 5; int c : 4; bool d; char name[8]; };
struct base { int k; };
struct derived : base { double x; color c; float f[2]; };
ALONE int colors(color c, wide w, bool b, char ch, unsigned char u) { return c + (int)w + b + ch + u; }
ALONE color pick(int n) { return n ? GREEN : BLUE; }
ALONE bool truth(int n) { return n > 2; }
ALONE int bits(flags f) { return f.a + f.b + f.c + f.d; }
ALONE double inherits(derived d, const derived &r, derived &&m) { return d.x + r.x + m.k; }
ALONE long texts(std::string s, const std::string &r, std::string_view v) { return s.size() + r.size() + v.size(); }
ALONE std::string made(int n) { return std::string(n, 'q'); }
struct opaque;
ALONE const int &ref(const int &n, const int &nowhere, opaque &) { return &nowhere ? n : nowhere; }
ALONE double _Complex z(double _Complex a, float _Complex b) { return a + b; }
int main() {
  static int n = 42;
  flags f = {3, 17, -2, true, "abc"};
  derived d; d.k = 7; d.x = 2.5; d.c = GREEN; d.f[0] = 1; d.f[1] = .5;
  long x = colors(GREEN, wide::all, true, 'q', 200) + colors((color)3, wide::none, false, '\n', 1) + pick(0) + pick(1) + truth(1) + truth(3) + bits(f);
  x += inherits(d, d, std::move(d)) + texts("short", std::string(100, 'y'), "view of it") + made(3).size() + ref(n, *(int *)16, (opaque &)n);
  double _Complex c = 3 + 4j;
  x += __real__ z(c, 1 - 2j);
  std::printf("%ld\n", x);
}
