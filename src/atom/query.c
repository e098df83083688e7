/* Questions about the program, objects, procedures and blocks. */
#include "atom/state.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --- segments: from the file's program headers --- */

static void add_segment(atom_segments *s, const Elf64_Phdr *h, uint64_t bias)
{
    uint64_t at = h->p_vaddr + bias;
    if (h->p_type != PT_LOAD) return;
    if (h->p_flags & PF_X && !s->text_size) {
        s->text = at;
        s->text_size = h->p_memsz;
    } else if (h->p_flags & PF_W && !s->data_size) {
        s->data = at;
        s->data_size = h->p_filesz;
        s->bss = at + h->p_filesz;
        s->bss_size = h->p_memsz - h->p_filesz;
    }
}

atom_segments atom_segments_of(inlay_image *i)
{
    atom_segments s = {0};
    Elf64_Ehdr e;
    Elf64_Phdr h;
    int fd = open(inlay_image_path(i), O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && pread(fd, &e, sizeof e, 0) == sizeof e)
        for (unsigned k = 0; k < e.e_phnum; k++)
            if (pread(fd, &h, sizeof h, (off_t)(e.e_phoff + k * sizeof h)) == sizeof h)
                add_segment(&s, &h, inlay_image_bias(i));
    if (fd >= 0) close(fd);
    return s;
}

/* --- numbers --- */

static long blocks_of(inlay_proc *p) { return atom_is_stub(p) ? 0 : inlay_proc_block_count(p); }

static long insts_of(inlay_proc *p)
{
    long n = 0;
    if (atom_is_stub(p)) return 0;
    for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) n += inlay_block_insn_count(b);
    return n;
}

static atom_numbers numbers_of(inlay_image *i)
{
    atom_numbers n = {0};
    if (atom_now.counted == i) return atom_now.numbers;
    for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
        n.procs++;
        n.blocks += blocks_of(p);
        n.insts += insts_of(p);
    }
    atom_now.counted = i;
    atom_now.numbers = n;
    return n;
}

long GetProgInfo(ProgInfoType what)
{
    long n = 0;
    (void)what;
    for (Obj *o = GetFirstObj(); o; o = GetNextObj(o)) n++;
    return n;
}

long GetObjInfo(Obj *o, ObjInfoType what)
{
    inlay_image *i = atom_image(o);
    atom_segments s = atom_segments_of(i);
    switch (what) {
    case ObjTextStart: return (long)s.text;
    case ObjTextSize: return (long)s.text_size;
    case ObjDataStart: return (long)s.data;
    case ObjDataSize: return (long)s.data_size;
    case ObjBssStart: return (long)s.bss;
    case ObjBssSize: return (long)s.bss_size;
    case ObjNumberProcs:
    case ObjNumberEntries: return numbers_of(i).procs;
    case ObjNumberBlocks: return numbers_of(i).blocks;
    case ObjNumberInsts: return numbers_of(i).insts;
    case ObjID: return inlay_image_id(i) - 1;
    }
    return 0;
}

long GetProgramInfo(ProgramInfoType what)
{
    static const ObjInfoType same[] = {
        [ProgramNumberProcs] = ObjNumberProcs,
        [ProgramNumberBlocks] = ObjNumberBlocks,
        [ProgramNumberInsts] = ObjNumberInsts,
    };
    return GetFirstObj() ? GetObjInfo(GetFirstObj(), same[what]) : 0;
}

const char *GetAnalName(void) { return atom_now.tool->analysis; }
const char *GetObjName(Obj *o) { return inlay_image_path(atom_image(o)); }
const char *GetObjOutName(Obj *o) { return GetObjName(o); }
long GetObjInstCount(Obj *o) { return numbers_of(atom_image(o)).insts; }

const unsigned *GetObjInstArray(Obj *o)
{
    unsigned *out = atom_alloc((size_t)GetObjInstCount(o) * sizeof *out + 1), *to = out;
    for (Proc *p = GetFirstObjProc(o); p; p = GetNextProc(p))
        for (Block *b = GetFirstBlock(p); b; b = GetNextBlock(b))
            for (Inst *i = GetFirstInst(b); i; i = GetNextInst(i)) *to++ = (unsigned)GetInstInfo(i, InstBinary);
    return out;
}

/* --- procedures --- */

/* Registers that a procedure saves before it does anything else, as a mask by number. */
static long saved_registers(inlay_proc *p)
{
    inlay_block *b = inlay_proc_block_first(p);
    long mask = 0;
    for (inlay_insn *i = b ? inlay_block_first(b) : NULL; i; i = inlay_insn_next(i)) {
        if (strcmp(inlay_opcode_name(inlay_insn_opcode(i)), "push")) continue;
        mask |= (long)(inlay_insn_regs_read(i) & ~(1ull << inlay_reg_stack_pointer()));
    }
    return mask;
}

/* What it takes off the stack pointer in its first block. */
static long frame_size(inlay_proc *p)
{
    inlay_block *b = inlay_proc_block_first(p);
    long size = 0;
    for (inlay_insn *i = b ? inlay_block_first(b) : NULL; i; i = inlay_insn_next(i)) {
        const char *name = inlay_opcode_name(inlay_insn_opcode(i));
        const uint8_t *raw = inlay_insn_bytes(i);
        unsigned n = inlay_insn_size(i);
        if (!strcmp(name, "push")) size += 8;
        if (strcmp(name, "sub") || inlay_insn_regs_written(i) != 1ull << inlay_reg_stack_pointer()) continue;
        if (n == 4 && raw[1] == 0x83) size += (int8_t)raw[3]; /* REX 83 /5 ib */
        if (n == 7 && raw[1] == 0x81) {                       /* REX 81 /5 id */
            int32_t amount;
            memcpy(&amount, raw + 3, sizeof amount);
            size += amount;
        }
    }
    return size;
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

long GetProcInfo(Proc *proc, ProcInfoType what)
{
    inlay_proc *p = atom_proc(proc);
    switch (what) {
    case ProcFrameSize: return frame_size(p);
    case ProcRegMask: return saved_registers(p);
    case ProcNumberBlocks: return blocks_of(p);
    case ProcNumberInsts: return insts_of(p);
    case ProcNumberEntries: return 1;
    case ProcID: return inlay_proc_id(p);
    case ProcFirstLine: return line_bound(p, false);
    case ProcLastLine: return line_bound(p, true);
    case ProcAddressTaken: return inlay_proc_address_taken(p);
    }
    return 0;
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
long EntryPC(Entry *e) { return ProcPC(GetEntryProc(e)); }

/* --- blocks --- */

long GetBlockInfo(Block *b, BlockInfoType what)
{
    return what == BlockNumberInsts ? inlay_block_insn_count(atom_block(b)) : inlay_block_id(atom_block(b));
}

long BlockPC(Block *b) { return (long)inlay_block_address(atom_block(b)); }
unsigned IsBranchTarget(Block *b) { return (inlay_block_flags(atom_block(b)) & INLAY_BLOCK_TARGET) != 0; }
