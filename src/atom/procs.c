/* Questions about procedures, entries and blocks. */
#include "atom/isa.h"
#include "atom/state.h"

#include <stdio.h>
#include <string.h>

long atom_blocks_of(inlay_proc *p) { return atom_is_stub(p) ? 0 : inlay_proc_block_count(p); }

long atom_insts_of(inlay_proc *p)
{
    long n = 0;
    if (atom_is_stub(p)) return 0;
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) n += inlay_block_insn_count(b);
    return n;
}

static long line_bound(inlay_proc *p, bool high)
{
    unsigned best = 0;
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i)) {
            const char *file;
            unsigned line;
            if (!inlay_line_at(inlay_insn_address(i), &file, &line) || !line) continue;
            if (!best || (high ? line > best : line < best)) best = line;
        }
    return best;
}

static bool has_block(inlay_proc *p, unsigned flags)
{
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        if (inlay_block_flags(b) & flags) return true;
    return false;
}

static bool has_tail(inlay_proc *p)
{
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b))
        for (unsigned k = 0; k < inlay_block_successor_count(b); k++)
            if (inlay_block_successor(b, k).kind == INLAY_EDGE_TAIL) return true;
    return false;
}

static long symbol_kind(inlay_proc *p)
{
    if (atom_is_stub(p)) return SYMRES_EXTERN;
    return ProcName((Proc *)p) ? atom_file_binding(inlay_proc_image(p), inlay_proc_name(p)) : SYMRES_NONE;
}

static long about_frame(inlay_proc *p, ProcInfoType what)
{
    atom_frame f = atom_isa_frame(p);
    switch ((int)what) {
    case ProcFrameSize: return f.size;
    case ProcIRegMask: return (long)f.saved;
    case ProcIRegOffset:
    case ProcLocalOffset: return -f.saved_bytes;
    case ProcFrameReg: return f.base;
    case ProcPcReg: return REG_RA;
    case ProcIsRegFrame: return f.in_register;
    case ProcSpSetOffset: return f.set;
    case ProcEntryLengthOffset: return f.ready;
    default: return 0; /* vector registers, a global pointer: there are none */
    }
}

long GetProcInfo(Proc *proc, ProcInfoType what)
{
    inlay_proc *p = atom_proc(proc);
    switch ((int)what) {
    case ProcNumberBlocks: return atom_blocks_of(p);
    case ProcNumberInsts: return atom_insts_of(p);
    case ProcNumberEntries: return 1;
    case ProcID: return inlay_proc_id(p);
    case ProcLineLow: return line_bound(p, false);
    case ProcLineHigh: return line_bound(p, true);
    case ProcAddrTaken: return inlay_proc_address_taken(p);
    case ProcSymRes: return symbol_kind(p);
    case ProcIpBrJmp: return has_tail(p);
    case ProcExceptionFrame: return has_block(p, INLAY_BLOCK_LANDING);
    case ProcHasAltEntries: return 0;
    default: return about_frame(p, what);
    }
}

const char *ProcName(Proc *proc)
{
    inlay_proc *p = atom_proc(proc);
    char none[32];
    snprintf(none, sizeof none, "sub_%llx",
             (unsigned long long)(inlay_proc_address(p) - inlay_image_bias(inlay_proc_image(p))));
    return strcmp(inlay_proc_name(p), none) ? inlay_proc_name(p) : NULL;
}

const char *ProcFileName(Proc *p)
{
    const char *file;
    unsigned line;
    return inlay_proc_line(atom_proc(p), &file, &line) ? file : NULL;
}

long ProcPC(Proc *p) { return (long)inlay_proc_address(atom_proc(p)); }
long ProcGP(Proc *p) { return (void)p, 0; }

long GetEntryInfo(Entry *e, EntryInfoType what) { return (void)e, (void)what, 0; }
const char *EntryName(Entry *e) { return ProcName(GetEntryProc(e)); }
long EntryPC(Entry *e) { return ProcPC(GetEntryProc(e)); }

/* --- blocks --- */

long GetBlockInfo(Block *b, BlockInfoType what)
{
    return what == BlockNumberInsts ? inlay_block_insn_count(atom_block(b)) : inlay_block_id(atom_block(b));
}

long BlockPC(Block *b) { return (long)inlay_block_address(atom_block(b)); }
unsigned IsBranchTarget(Block *b) { return (inlay_block_flags(atom_block(b)) & INLAY_BLOCK_TARGET) != 0; }
