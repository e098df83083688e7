#include <cstdio>
#include <map>
#include <string>

static std::map<std::string, int> names;

extern "C" void Names(int n)
{
    names["names"] = n;
    for (auto &k : names) printf("%s %d\n", k.first.c_str(), k.second);
}
