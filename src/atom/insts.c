/* Questions about instructions, by what they do: memory operands, flow, registers. */
#include "atom/isa.h"
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

int IsInstType(Inst *inst, ITypeType type)
{
    const inlay_insn *i = atom_insn(inst);
    bool loads = atom_operand(i, false) >= 0, stores = atom_operand(i, true) >= 0;
    switch ((int)type) {
    case InstTypeLoad: return loads;
    case InstTypeStore: return stores;
    case InstTypeMem: return loads || stores;
    case InstTypeJump: return is_jump(i);
    case InstTypeCondBr: return inlay_insn_is_conditional(i);
    case InstTypeUncondBr: return is_unconditional(i);
    case InstTypeRet: return inlay_insn_is_return(i);
    case InstTypeInt: return !atom_isa_type(i, InstTypeFP);
    default: return atom_isa_type(i, type);
    }
}

IClassType GetInstClass(Inst *inst)
{
    const inlay_insn *i = atom_insn(inst);
    if (inlay_insn_is_call(i)) return ClassSubroutine;
    if (inlay_insn_is_branch(i)) return ClassIbranch;
    return atom_isa_class(i, atom_operand(i, false) >= 0, atom_operand(i, true) >= 0);
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

RegvType GetInstRegEnum(Inst *inst, InstInfoType what) { return (RegvType)register_number(atom_insn(inst), what); }

void GetInstRegUsage(Inst *inst, InstRegUsageVec *out)
{
    const inlay_insn *i = atom_insn(inst);
    *out = (InstRegUsageVec){0};
    out->ureg_bitvec[0] = inlay_insn_regs_read(i) | (uint64_t)inlay_insn_vectors_read(i) << FREG_0;
    out->dreg_bitvec[0] = inlay_insn_regs_written(i) | (uint64_t)inlay_insn_vectors_written(i) << FREG_0;
}

static int first_bytes(const inlay_insn *i)
{
    uint32_t word = 0;
    unsigned n = inlay_insn_size(i);
    memcpy(&word, inlay_insn_bytes(i), n < sizeof word ? n : sizeof word);
    return (int)word;
}

/* Tools tell calls and jumps by Alpha's numbers, below 64. */
static int opcode(const inlay_insn *i)
{
    enum { JUMPS = 0x1a, BR = 0x30, BSR = 0x34, OTHER = 64 };
    if (inlay_insn_is_call(i)) return inlay_insn_target(i) ? BSR : JUMPS;
    if (inlay_insn_is_return(i)) return JUMPS;
    if (is_unconditional(i)) return inlay_insn_target(i) ? BR : JUMPS;
    return OTHER + (int)inlay_insn_opcode(i);
}

static int displacement(const inlay_insn *i)
{
    int k = atom_operand(i, false);
    if (k < 0) k = atom_operand(i, true);
    return k < 0 ? 0 : (int)inlay_insn_address_of(i, (unsigned)k).displacement;
}

static int distance(const inlay_insn *i)
{
    if (!inlay_insn_target(i)) return 0;
    return (int)(inlay_insn_target(i) - inlay_insn_address(i) - inlay_insn_size(i));
}

static bool is_entry(const inlay_insn *i) { return inlay_insn_address(i) == inlay_proc_address(inlay_insn_proc(i)); }

static bool address_taken(const inlay_insn *i)
{
    inlay_block *b = inlay_insn_block(i);
    if (inlay_block_first(b) != i) return false;
    if (is_entry(i) && inlay_proc_address_taken(inlay_insn_proc(i))) return true;
    return (inlay_block_flags(b) & INLAY_BLOCK_ADDRESS_TAKEN) != 0;
}

/* A jump, no call and no return, out of the procedure. */
static bool leaves(const inlay_insn *i)
{
    inlay_block *b = inlay_insn_block(i);
    if (!inlay_insn_is_branch(i) || inlay_insn_is_call(i) || inlay_insn_is_return(i)) return false;
    for (unsigned k = 0; k < inlay_block_successor_count(b); k++)
        if (inlay_block_successor(b, k).kind == INLAY_EDGE_TAIL) return true;
    return (inlay_block_flags(b) & INLAY_BLOCK_UNRESOLVED) != 0;
}

/* Is it behind what the prologue does at `set` (0: nowhere)? */
static bool is_behind(const inlay_insn *i, long set)
{
    return set && inlay_insn_address(i) >= inlay_proc_address(inlay_insn_proc(i)) + (uint64_t)set;
}

int GetInstInfo(Inst *inst, InstInfoType what)
{
    const inlay_insn *i = atom_insn(inst);
    switch (what) {
    case InstMemDisp: return displacement(i);
    case InstBrDisp: return distance(i);
    case InstRA:
    case InstRB:
    case InstRC: return register_number(i, what);
    case InstOpcode: return opcode(i);
    case InstBinary: return first_bytes(i);
    case InstAddrTaken: return address_taken(i);
    case InstEntryPoint: return is_entry(i);
    case InstIpJmp: return leaves(i) && inlay_insn_is_indirect(i);
    case InstIpBr: return leaves(i) && !inlay_insn_is_indirect(i);
    case InstContext: return CONTEXT_UNKNOWN;
    case InstStackPtrValid: return is_behind(i, atom_isa_frame(inlay_insn_proc(i)).set);
    case InstFramePtrValid: return is_behind(i, atom_isa_frame(inlay_insn_proc(i)).base_set);
    case InstRaRegValid: return 0;
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
