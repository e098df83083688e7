// Coroutines of C++20 that throw and are destroyed half way.
#include <coroutine>
#include <cstdio>
#include <exception>
#include <stdexcept>
struct list {
    struct promise_type {
        int now = 0;
        list get_return_object() { return list{std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(int v) { now = v; return {}; }
        void return_void() {}
        void unhandled_exception() { throw; }
    };
    std::coroutine_handle<promise_type> h;
    explicit list(std::coroutine_handle<promise_type> x) : h(x) {}
    list(list &&o) : h(o.h) { o.h = nullptr; }
    ~list() { if (h) h.destroy(); }
    bool next() { h.resume(); return !h.done(); }
};
struct said { const char *s; ~said() { std::printf("~%s\n", s); } };
static list upto(int n)
{
    said s{"upto"};
    for (int i = 0; i < n; i++) {
        if (i == 7) throw std::runtime_error("seven");
        co_yield i * i;
    }
}
static list twice(int n)
{
    auto l = upto(n);
    while (l.next()) co_yield l.h.promise().now * 2;
}
int main()
{
    int sum = 0;
    { auto l = twice(5); while (l.next()) sum += l.h.promise().now; }
    { auto l = twice(6); l.next(); l.next(); }
    try { auto l = twice(10); while (l.next()) sum += l.h.promise().now; } catch (std::exception &e) { std::puts(e.what()); }
    std::printf("%d\n", sum);
    return sum & 63;
}
