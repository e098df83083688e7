#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <atomic>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>
#include <csignal>
#include <csetjmp>
#include <unistd.h>
#include <sys/wait.h>
static std::mutex m;
static long sum;
static std::atomic<long> fast;
static void work(int n) { for (int i = 0; i < 2000; i++) { std::lock_guard<std::mutex> l(m); sum += i % n; fast++; } }
static int deep(int n) { if (!n) throw std::runtime_error("deep"); return deep(n - 1) + 1; }
static sigjmp_buf back;
static void on(int s) { siglongjmp(back, s); }
static volatile sig_atomic_t hits;
static void hit(int) { hits = hits + 1; }
int main(int argc, char **argv)
{
    std::vector<std::thread> t;
    for (int i = 0; i < 6; i++) t.emplace_back(work, i + 2);
    for (auto &x : t) x.join();
    printf("%ld %ld\n", sum, fast.load());
    try { deep(20); } catch (std::exception &e) { printf("%s\n", e.what()); }
    std::string s;
    for (int i = 0; i < 1000; i++) s += std::to_string(i * i);
    printf("%zu\n", s.size());
    signal(SIGFPE, on);
    if (!sigsetjmp(back, 1)) raise(SIGFPE); else puts("jumped");
    signal(SIGUSR1, hit);
    for (int i = 0; i < 10; i++) raise(SIGUSR1);
    printf("%d hits\n", (int)hits);
    fflush(stdout);
    pid_t c = fork();
    if (!c) { std::thread(work, 3).join(); _exit(sum & 1 ? 3 : 4); }
    int st; waitpid(c, &st, 0); printf("child %d\n", WEXITSTATUS(st));
    int k = argc > 1 ? atoi(argv[1]) : 0;
    if (k == 1) { char *p = (char *)malloc(10); memset(p, 1, 10); free(p); printf("%d\n", p[argc]); }
    if (k == 2) { volatile int a = 0x7fffffff; a = a + argc; printf("%d\n", a); }
    if (k == 3) { int *u = (int *)malloc(40); if (u[argc]) puts("set"); }
    if (k == 4) { std::thread a([] { sum++; }), b([] { sum++; }); a.join(); b.join(); puts("race"); }
    if (k == 5) { void *volatile p = malloc(1234); p = 0; (void)p; }
    if (k == 6) { *(volatile int *)(long)argc = 1; }
    if (k == 7) { char b[8]; for (int i = 0; i <= 8; i++) ((volatile char *)b)[i] = argc; puts("over"); }
    return 0;
}
