/* Where the dynamic linker looks for libraries on this architecture. */
#include "tool/rewriter.h"

/* Subfolders of what only some processors can run, this one among them; those that ask for least first. */
void rewriter_hwcaps(const char *found[REWRITER_LEVELS])
{
    int n = 0;
    bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("popcnt");
    bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") &&
              __builtin_cpu_supports("fma");
    bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
              __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
              __builtin_cpu_supports("avx512vl");
    if (v2) found[n++] = "/glibc-hwcaps/x86-64-v2";
    if (v3) found[n++] = "/glibc-hwcaps/x86-64-v3";
    if (v4) found[n++] = "/glibc-hwcaps/x86-64-v4";
    found[n] = NULL;
}

const char rewriter_folders[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:/lib64:/usr/lib64:/lib:/usr/lib";
