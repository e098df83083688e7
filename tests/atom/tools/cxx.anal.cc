#include <cmath>
#include <cstdio>
#include <map>
#include <string>

static std::map<std::string, int> names;

extern "C" void Names(int n)
{
    names["names"] = n + (std::sin((double)n) > 1); /* the mathematical library is at hand, as in all C++ */
    for (auto &k : names) printf("%s %d\n", k.first.c_str(), k.second);
}
