/* Questions about the program and its objects. */
#include "atom/state.h"

/* --- numbers --- */

static atom_numbers numbers_of(inlay_image *i)
{
    atom_numbers n = {0};
    if (atom_now.counted == i) return atom_now.numbers;
    for (inlay_proc *p = inlay_image_proc_first(i); p; p = inlay_proc_next(p)) {
        n.procs++;
        n.blocks += atom_blocks_of(p);
        n.insts += atom_insts_of(p);
    }
    atom_now.counted = i;
    atom_now.numbers = n;
    return n;
}

static long objects(void)
{
    long n = 0;
    for (Obj *o = GetFirstObj(); o; o = GetNextObj(o)) n++;
    return n;
}

long GetProgInfo(ProgInfoType what) { return what == ProgNumErrantShlibs ? 0 : objects(); }
const char *GetErrantShlibName(int n) { return (void)n, NULL; }
ShlibErrType GetErrantShlibErr(int n) { return (void)n, SHLIB_NOTOPEN; }

static long shared(inlay_image *i, const atom_file *f)
{
    if (!inlay_image_is_main(i)) return OBJ_SHARABLE;
    return f->interpreted ? OBJ_CALL_SHARED : OBJ_NON_SHARED;
}

static long about_file(inlay_image *i, ObjInfoType what)
{
    atom_file f = atom_file_of(i);
    switch ((int)what) {
    case ObjTextStartAddress: return (long)f.text;
    case ObjTextSize: return (long)f.text_size;
    case ObjInitDataStartAddress: return (long)f.data;
    case ObjInitDataSize: return (long)f.data_size;
    case ObjUninitDataStartAddress: return (long)f.bss;
    case ObjUninitDataSize: return (long)f.bss_size;
    case ObjSymResolution: return f.symbolic ? OBJ_SYMBOLIC : OBJ_STANDARD;
    case ObjShared: return shared(i, &f);
    default: return 0;
    }
}

long GetObjInfo(Obj *o, ObjInfoType what)
{
    inlay_image *i = atom_image(o);
    switch ((int)what) {
    case ObjNumberProcs:
    case ObjNumberEntries: return numbers_of(i).procs;
    case ObjNumberBlocks: return numbers_of(i).blocks;
    case ObjNumberInsts: return numbers_of(i).insts;
    case ObjID: return inlay_image_id(i) - 1;
    case ObjModifyHint: return OBJ_WRITEABLE; /* others are not shown */
    default: return about_file(i, what);
    }
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
