/* Names of instruction classes, as a person reads them in a table. */
#include <string.h>
#include "gen.h"

/* clang-format off */
static const struct { ZydisInstructionCategory category; const char *name; } names[] = {
    {ZYDIS_CATEGORY_BINARY, "arithmetic"}, {ZYDIS_CATEGORY_ADOX_ADCX, "arithmetic"},
    {ZYDIS_CATEGORY_DECIMAL, "arithmetic"},
    {ZYDIS_CATEGORY_LOGICAL, "logic"}, {ZYDIS_CATEGORY_SHIFT, "shift"},
    {ZYDIS_CATEGORY_ROTATE, "shift"}, {ZYDIS_CATEGORY_BITBYTE, "bit"},
    {ZYDIS_CATEGORY_BMI1, "bit"}, {ZYDIS_CATEGORY_BMI2, "bit"}, {ZYDIS_CATEGORY_LZCNT, "bit"},
    {ZYDIS_CATEGORY_TBM, "bit"},
    {ZYDIS_CATEGORY_SETCC, "set on condition"}, {ZYDIS_CATEGORY_CMOV, "conditional move"},
    {ZYDIS_CATEGORY_DATAXFER, "data transfer"}, {ZYDIS_CATEGORY_CONVERT, "conversion"},
    {ZYDIS_CATEGORY_PUSH, "stack"}, {ZYDIS_CATEGORY_POP, "stack"},
    {ZYDIS_CATEGORY_CALL, "call"}, {ZYDIS_CATEGORY_RET, "return"},
    {ZYDIS_CATEGORY_COND_BR, "conditional branch"}, {ZYDIS_CATEGORY_UNCOND_BR, "jump"},
    {ZYDIS_CATEGORY_STRINGOP, "string"}, {ZYDIS_CATEGORY_IOSTRINGOP, "input/output"},
    {ZYDIS_CATEGORY_IO, "input/output"}, {ZYDIS_CATEGORY_SEMAPHORE, "atomic"},
    {ZYDIS_CATEGORY_FLAGOP, "flags"}, {ZYDIS_CATEGORY_NOP, "nop"}, {ZYDIS_CATEGORY_WIDENOP, "nop"},
    {ZYDIS_CATEGORY_SYSCALL, "system call"}, {ZYDIS_CATEGORY_SYSRET, "system"},
    {ZYDIS_CATEGORY_INTERRUPT, "interrupt"}, {ZYDIS_CATEGORY_SYSTEM, "system"},
    {ZYDIS_CATEGORY_SEGOP, "system"}, {ZYDIS_CATEGORY_RDWRFSGS, "system"},
    {ZYDIS_CATEGORY_VTX, "virtualization"}, {ZYDIS_CATEGORY_PREFETCH, "prefetch"},
    {ZYDIS_CATEGORY_PREFETCHWT1, "prefetch"}, {ZYDIS_CATEGORY_XSAVE, "state save"},
    {ZYDIS_CATEGORY_XSAVEOPT, "state save"}, {ZYDIS_CATEGORY_X87_ALU, "x87"},
    {ZYDIS_CATEGORY_FCMOV, "x87"}, {ZYDIS_CATEGORY_RDRAND, "random"}, {ZYDIS_CATEGORY_RDSEED, "random"},
    {ZYDIS_CATEGORY_KMASK, "AVX-512 mask"}, {ZYDIS_CATEGORY_CET, "control-flow protection"},
    {ZYDIS_CATEGORY_MISC, "other"}, {ZYDIS_CATEGORY_AMD3DNOW, "3DNow!"},
};
/* clang-format on */

static const struct {
    ZydisISAExt ext;
    const char *name;
} extensions[] = {
    {ZYDIS_ISA_EXT_MMX, "MMX"},
    {ZYDIS_ISA_EXT_SSE, "SSE"},
    {ZYDIS_ISA_EXT_SSE2, "SSE2"},
    {ZYDIS_ISA_EXT_SSE3, "SSE3"},
    {ZYDIS_ISA_EXT_SSSE3, "SSSE3"},
    {ZYDIS_ISA_EXT_SSE4, "SSE4"},
    {ZYDIS_ISA_EXT_AVX, "AVX"},
    {ZYDIS_ISA_EXT_AVX2, "AVX2"},
    {ZYDIS_ISA_EXT_AVX2GATHER, "AVX2"},
    {ZYDIS_ISA_EXT_AVX512EVEX, "AVX-512"},
    {ZYDIS_ISA_EXT_FMA, "FMA"},
    {ZYDIS_ISA_EXT_AES, "AES"},
    {ZYDIS_ISA_EXT_AVXAES, "AES"},
    {ZYDIS_ISA_EXT_SHA, "SHA"},
    {ZYDIS_ISA_EXT_AVX_VNNI, "AVX-VNNI"},
    {ZYDIS_ISA_EXT_RTM, "transaction"}, /* of which Zydis has branches and logic */
};

const char *category_of(const answer *a)
{
    ZydisInstructionCategory c = a->in.meta.category;
    if (c != ZYDIS_CATEGORY_PREFETCH && c != ZYDIS_CATEGORY_MISC)
        for (size_t i = 0; i < sizeof extensions / sizeof *extensions; i++)
            if (extensions[i].ext == a->in.meta.isa_ext) return extensions[i].name;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].category == c) return names[i].name;
    return ZydisCategoryGetString(c);
}
