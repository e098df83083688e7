// Stacks that are switched: boost's own assembler, ucontext, exceptions within each.
#include <boost/context/detail/fcontext.hpp>
#include <cstdio>
#include <stdexcept>
#include <ucontext.h>
#include <vector>
using namespace boost::context::detail;
static int sum;
static void work(transfer_t t)
{
    for (int i = 0; i < 50; i++) {
        try { if (i % 5 == 3) throw std::runtime_error("x"); sum += i; } catch (...) { sum -= 1; }
        t = jump_fcontext(t.fctx, nullptr);
    }
    jump_fcontext(t.fctx, t.fctx);
}
static ucontext_t here, there;
static void other() { for (int i = 0; i < 30; i++) { sum += i * 2; swapcontext(&there, &here); } }
int main()
{
    std::vector<char> a(1 << 17), b(1 << 17);
    transfer_t t = {make_fcontext(a.data() + a.size(), a.size(), work), nullptr};
    do t = jump_fcontext(t.fctx, nullptr); while (!t.data);
    getcontext(&there);
    there.uc_stack.ss_sp = b.data();
    there.uc_stack.ss_size = b.size();
    there.uc_link = &here;
    makecontext(&there, other, 0);
    for (int i = 0; i < 31; i++) swapcontext(&here, &there);
    std::printf("%d\n", sum);
    return 3;
}
