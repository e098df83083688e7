// Exceptions through frames that were there before the tool came, and through new ones.
#include <cstdio>
#include <iostream>
#include <stdexcept>
#include <string>

static int cleaned;
struct cleans {
    ~cleans() { cleaned++; }
};

__attribute__((noinline)) int deep(int n, const std::string &text)
{
    cleans here;
    if (n == 0) throw std::runtime_error(text);
    return deep(n - 1, text) + 1;
}

int main()
{
    std::string line;
    while (std::getline(std::cin, line)) {
        try {
            if (line == "around") throw 5;
            std::cout << deep(6, line) << std::endl;
        } catch (const std::exception &e) {
            std::cout << "caught " << e.what() << " " << cleaned << std::endl;
        } catch (int n) {
            std::cout << "number " << n << std::endl;
        }
    }
    return 3;
}
