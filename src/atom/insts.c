/* Questions about instructions, by what they do: memory operands, flow, the name and group of the opcode. */
#include "atom/state.h"

#include <string.h>

int atom_operand(const inlay_insn *i, bool write)
{
    for (unsigned k = 0; k < inlay_insn_memory_count(i); k++) {
        inlay_memory m = inlay_insn_memory(i, k);
        if (write ? m.write : m.read) return (int)k;
    }
    return -1;
}

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

static bool is_jump(const inlay_insn *i)
{
    return inlay_insn_is_branch(i) && !inlay_insn_is_conditional(i) &&
           (inlay_insn_is_indirect(i) || inlay_insn_is_call(i));
}

static bool is_unconditional(const inlay_insn *i)
{
    return inlay_insn_is_branch(i) && !inlay_insn_is_conditional(i) && !inlay_insn_is_call(i) &&
           !inlay_insn_is_return(i);
}

int IsInstType(Inst *inst, InstType type)
{
    const inlay_insn *i = atom_insn(inst);
    const char *name = name_of(i);
    switch (type) {
    case InstTypeLoad: return atom_operand(i, false) >= 0;
    case InstTypeStore: return atom_operand(i, true) >= 0;
    case InstTypeMem: return atom_operand(i, false) >= 0 || atom_operand(i, true) >= 0;
    case InstTypeJump: return is_jump(i);
    case InstTypeCondBr: return inlay_insn_is_conditional(i);
    case InstTypeUncondBr: return is_unconditional(i);
    case InstTypeRet: return inlay_insn_is_return(i);
    case InstTypeFP: return is_fp(i);
    case InstTypeInt: return !is_fp(i);
    case InstTypeAdd: return is_add(name);
    case InstTypeSub: return is_sub(name);
    case InstTypeMul: return strstr(name, "mul") != NULL;
    case InstTypeDiv: return is_div(name);
    case InstTypeNop: return is_nop(name);
    }
    return 0;
}

static InstClassType class_of_memory(const inlay_insn *i)
{
    bool loads = atom_operand(i, false) >= 0, stores = atom_operand(i, true) >= 0;
    if (loads && stores) return InstClassLoadStore;
    if (loads) return is_fp(i) ? InstClassFPLoad : InstClassLoad;
    return is_fp(i) ? InstClassFPStore : InstClassStore;
}

static bool only_moves(const inlay_insn *i)
{
    static const char *const words[] = {"mov",  "vmov", "push", "pop", "fld",        "fst",   "fist",
                                        "fild", "lods", "stos", "cvt", "vbroadcast", "leave", NULL};
    return begins(name_of(i), words);
}

static InstClassType class_of_integer(const inlay_insn *i)
{
    static const char *const logic[] = {"logic", "bit", NULL}, *const shift[] = {"shift", NULL};
    static const char *const move[] = {"conditional move", NULL};
    static const char *const compare[] = {"cmp", "test", "scas", "set", NULL};
    static const char *const nothing[] = {"system", "interrupt", "virtualization", "unknown", "invalid", NULL};
    const char *name = name_of(i);
    if (inlay_insn_is_syscall(i) || in_group(i, nothing)) return InstClassOther;
    if (strstr(name, "mul")) return InstClassMul;
    if (begins(name, compare)) return InstClassCompare;
    if (in_group(i, move)) return InstClassCondMove;
    if (in_group(i, logic)) return InstClassLogic;
    if (in_group(i, shift)) return InstClassShift;
    return InstClassInt;
}

InstClassType GetInstClass(Inst *inst)
{
    const inlay_insn *i = atom_insn(inst);
    const char *name = name_of(i);
    if (inlay_insn_is_call(i)) return InstClassCall;
    if (inlay_insn_is_branch(i)) return InstClassBranch;
    if ((atom_operand(i, false) >= 0 || atom_operand(i, true) >= 0) && (only_moves(i) || atom_operand(i, true) >= 0))
        return class_of_memory(i);
    if (!is_fp(i)) return class_of_integer(i);
    if (is_div(name)) return InstClassFPDiv;
    return InstClassFP;
}

/* --- registers and fields --- */

static int lowest(uint64_t mask) { return mask ? __builtin_ctzll(mask) : -1; }

static int register_number(const inlay_insn *i, InstInfoType what)
{
    int k = atom_operand(i, false);
    if (k < 0) k = atom_operand(i, true);
    inlay_address a = k < 0 ? (inlay_address){.base = -1, .index = -1} : inlay_insn_address_of(i, (unsigned)k);
    if (what == InstRB) return a.base;
    if (what == InstRC) return a.index;
    uint64_t stack = 1ull << inlay_reg_stack_pointer(), written = inlay_insn_regs_written(i),
             read = inlay_insn_regs_read(i);
    if (written & ~stack) return lowest(written & ~stack);
    if (a.base >= 0) read &= ~(1ull << a.base);
    if (a.index >= 0) read &= ~(1ull << a.index);
    return lowest(read & ~stack);
}

RegvType GetInstRegEnum(Inst *inst, InstInfoType what)
{
    int n = register_number(atom_insn(inst), what);
    return n < 0 ? REG_ZERO : (RegvType)n;
}

void GetInstRegUsage(Inst *inst, InstRegUsage *out)
{
    out->reads = inlay_insn_regs_read(atom_insn(inst));
    out->writes = inlay_insn_regs_written(atom_insn(inst));
}

static int first_bytes(const inlay_insn *i)
{
    uint32_t word = 0;
    unsigned n = inlay_insn_size(i);
    memcpy(&word, inlay_insn_bytes(i), n < sizeof word ? n : sizeof word);
    return (int)word;
}

int GetInstInfo(Inst *inst, InstInfoType what)
{
    const inlay_insn *i = atom_insn(inst);
    int k = atom_operand(i, false);
    switch (what) {
    case InstMemDisp:
        if (k < 0) k = atom_operand(i, true);
        return k < 0 ? 0 : (int)inlay_insn_address_of(i, (unsigned)k).displacement;
    case InstBrDisp:
        if (!inlay_insn_target(i)) return 0;
        return (int)(inlay_insn_target(i) - inlay_insn_address(i) - inlay_insn_size(i));
    case InstRA:
    case InstRB:
    case InstRC: return register_number(i, what);
    case InstOpcode: return (int)inlay_insn_opcode(i);
    case InstBinary: return first_bytes(i);
    }
    return 0;
}

int GetInstBinary(long pc)
{
    inlay_insn *i = inlay_insn_at((uint64_t)pc);
    return i ? first_bytes(i) : 0;
}

long InstPC(Inst *i) { return (long)inlay_insn_address(atom_insn(i)); }

long InstLineNo(Inst *i)
{
    const char *file;
    unsigned line;
    return inlay_line_at(inlay_insn_address(atom_insn(i)), &file, &line) ? (long)line : 0;
}
