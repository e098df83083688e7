/* Kinds of instructions of x86-64, by the name and group of the opcode. */
#include "atom/isa.h"

#include <string.h>

static const char *name_of(const inlay_insn *i) { return inlay_opcode_name(inlay_insn_opcode(i)); }

static bool in_group(const inlay_insn *i, const char *const *groups)
{
    const char *group = inlay_opcode_class(inlay_insn_opcode(i));
    while (*groups && strncmp(group, *groups, strlen(*groups))) groups++;
    return *groups != NULL;
}

static bool begins(const char *name, const char *const *words)
{
    while (*words && strncmp(name, *words, strlen(*words))) words++;
    return *words != NULL;
}

static bool is_fp(const inlay_insn *i)
{
    static const char *const groups[] = {"SSE", "SSSE", "AVX", "FMA", "x87", "3DNow!", "MMX", "XOP", "VAES", NULL};
    return in_group(i, groups);
}

static bool is_add(const char *name)
{
    static const char *const words[] = {"add",  "adc",   "adox",  "inc",   "xadd",  "fadd",   "fiadd", "padd",
                                        "vadd", "vpadd", "haddp", "phadd", "vhadd", "vphadd", NULL};
    return begins(name, words);
}

static bool is_sub(const char *name)
{
    static const char *const words[] = {"sub",   "sbb",   "dec",   "fsub",  "fisub",  "psub", "vsub",
                                        "vpsub", "hsubp", "phsub", "vhsub", "vphsub", NULL};
    return begins(name, words);
}

static bool is_div(const char *name)
{
    static const char *const words[] = {"div", "idiv", "fdiv", "fidiv", "vdiv", NULL};
    return begins(name, words);
}

static bool is_nop(const char *name)
{
    static const char *const words[] = {"nop", "fnop", "endbr", NULL};
    return begins(name, words);
}

bool atom_isa_type(const inlay_insn *i, ITypeType type)
{
    const char *name = name_of(i);
    switch ((int)type) {
    case InstTypeFP: return is_fp(i);
    case InstTypeAdd: return is_add(name);
    case InstTypeSub: return is_sub(name);
    case InstTypeMul: return strstr(name, "mul") != NULL;
    case InstTypeDiv: return is_div(name);
    case InstTypeNop: return is_nop(name);
    default: return false;
    }
}

static bool only_moves(const inlay_insn *i)
{
    static const char *const words[] = {"mov",  "vmov", "push", "pop", "fld",        "fst",   "fist",
                                        "fild", "lods", "stos", "cvt", "vbroadcast", "leave", NULL};
    return begins(name_of(i), words);
}

static IClassType class_of_memory(const inlay_insn *i, bool loads, bool stores)
{
    if (loads && stores) return ClassMem;
    if (loads) return is_fp(i) ? ClassFload : ClassLoad;
    return is_fp(i) ? ClassFstore : ClassStore;
}

/* With REX.W it is one of 64 bits. */
static bool is_wide(const inlay_insn *i)
{
    const uint8_t *raw = inlay_insn_bytes(i);
    unsigned n = inlay_insn_size(i), at = 0;
    while (at < n && (raw[at] == 0x66 || raw[at] == 0xf2 || raw[at] == 0xf3 || raw[at] == 0x2e || raw[at] == 0x3e ||
                      raw[at] == 0x64 || raw[at] == 0x65 || raw[at] == 0x67))
        at++;
    if (at < n && raw[at] == 0xc4) return at + 2 < n && raw[at + 2] & 0x80; /* mulx */
    return at < n && (raw[at] & 0xf8) == 0x48;
}

static IClassType class_of_integer(const inlay_insn *i)
{
    static const char *const logic[] = {"logic", "bit", NULL}, *const shift[] = {"shift", NULL};
    static const char *const shift_of_bits[] = {"shlx", "shrx", "sarx", "rorx", NULL};
    static const char *const move[] = {"conditional move", NULL};
    static const char *const compare[] = {"cmp", "test", "scas", "set", NULL};
    static const char *const nothing[] = {"system", "interrupt", "virtualization", "unknown", "invalid", NULL};
    const char *name = name_of(i);
    if (inlay_insn_is_syscall(i) || in_group(i, nothing)) return ClassNull;
    if (strstr(name, "mul")) return is_wide(i) ? ClassImultiplyq : ClassImultiplyl;
    if (begins(name, compare)) return ClassIcompare;
    if (in_group(i, move)) return ClassIcondmove;
    if (in_group(i, shift) || begins(name, shift_of_bits)) return ClassIshift;
    if (in_group(i, logic)) return ClassIlogical;
    return ClassIarithmetic;
}

/* divss, vdivps, ...: single precision; divsd, fdiv, ...: double, or more. */
static IClassType class_of_division(const char *name)
{
    size_t n = strlen(name);
    return n > 2 && name[n - 1] == 's' && (name[n - 2] == 's' || name[n - 2] == 'p') ? ClassFdivs : ClassFdivd;
}

IClassType atom_isa_class(const inlay_insn *i, bool loads, bool stores)
{
    if ((loads && only_moves(i)) || stores) return class_of_memory(i, loads, stores);
    if (!is_fp(i)) return class_of_integer(i);
    return is_div(name_of(i)) ? class_of_division(name_of(i)) : ClassFpop;
}
