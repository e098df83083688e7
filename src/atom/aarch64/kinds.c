/* Kinds of instructions of AArch64, by the name of the opcode. */
#include "atom/isa.h"

#include <string.h>

static const char *name_of(const inlay_insn *i) { return inlay_opcode_name(inlay_insn_opcode(i)); }

static uint32_t word_of(const inlay_insn *i)
{
    uint32_t word;
    memcpy(&word, inlay_insn_bytes(i), sizeof word);
    return word;
}

static bool begins(const char *name, const char *const *words)
{
    while (*words && strncmp(name, *words, strlen(*words))) words++;
    return *words != NULL;
}

static bool is_fp(const inlay_insn *i) { return inlay_insn_vectors_read(i) || inlay_insn_vectors_written(i); }

static bool is_add(const char *name)
{
    static const char *const words[] = {"add", "adc", "fadd", "uadd", "sadd", "uqadd", "sqadd", "ldadd", "stadd", NULL};
    return begins(name, words);
}

static bool is_sub(const char *name)
{
    static const char *const words[] = {"sub", "sbc", "fsub", "usub", "ssub", "uqsub", "sqsub", NULL};
    return begins(name, words);
}

static bool is_mul(const char *name)
{
    static const char *const words[] = {"madd",   "msub",   "smadd", "smsub", "umadd", "umsub", "fmadd", "fmsub",
                                        "fnmadd", "fnmsub", "fmla",  "fmls",  "mla",   "mls",   NULL};
    return begins(name, words) || strstr(name, "mul") != NULL;
}

static bool is_div(const char *name)
{
    static const char *const words[] = {"sdiv", "udiv", "fdiv", NULL};
    return begins(name, words);
}

static bool is_nop(const char *name)
{
    static const char *const words[] = {"nop", "hint", "bti", NULL};
    return begins(name, words);
}

bool atom_isa_type(const inlay_insn *i, ITypeType type)
{
    const char *name = name_of(i);
    switch ((int)type) {
    case InstTypeFP: return is_fp(i);
    case InstTypeAdd: return is_add(name);
    case InstTypeSub: return is_sub(name);
    case InstTypeMul: return is_mul(name);
    case InstTypeDiv: return is_div(name);
    case InstTypeNop: return is_nop(name);
    default: return false;
    }
}

static IClassType class_of_memory(const inlay_insn *i, bool loads, bool stores)
{
    if (loads && stores) return ClassMem;
    if (loads) return is_fp(i) ? ClassFload : ClassLoad;
    return is_fp(i) ? ClassFstore : ClassStore;
}

/* cmp, cmn and tst are subs, adds and ands into the zero register; ccmp and ccmn are themselves. */
static bool compares(const char *name, uint32_t word)
{
    static const char *const flags[] = {"subs", "adds", "ands", NULL}, *const always[] = {"ccm", NULL};
    return begins(name, always) || (begins(name, flags) && (word & 31) == 31);
}

static IClassType class_of_integer(const inlay_insn *i)
{
    static const char *const logic[] = {"and", "orr", "eor", "bic", "orn", "eon", NULL};
    static const char *const shift[] = {"lsl", "lsr", "asr", "ror", "ubfm", "sbfm", "bfm", "extr", NULL};
    static const char *const move[] = {"cs", NULL};
    const char *name = name_of(i), *group = inlay_opcode_class(inlay_insn_opcode(i));
    uint32_t word = word_of(i);
    if (inlay_insn_is_syscall(i) || !strcmp(group, "system") || !strcmp(group, "unknown")) return ClassNull;
    if (is_mul(name)) return word >> 31 ? ClassImultiplyq : ClassImultiplyl;
    if (compares(name, word)) return ClassIcompare;
    if (begins(name, move)) return ClassIcondmove;
    if (begins(name, logic)) return ClassIlogical;
    if (begins(name, shift)) return ClassIshift;
    return ClassIarithmetic;
}

IClassType atom_isa_class(const inlay_insn *i, bool loads, bool stores)
{
    if (loads || stores) return class_of_memory(i, loads, stores);
    if (!is_fp(i)) return class_of_integer(i);
    if (!is_div(name_of(i))) return ClassFpop;
    return word_of(i) >> 22 & 3 ? ClassFdivd : ClassFdivs;
}
