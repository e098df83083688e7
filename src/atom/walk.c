/* Walking: objects, procedures, blocks, instructions. */
#include "atom/state.h"

#include <stddef.h>

Obj *GetFirstObj(void)
{
    inlay_image *i = inlay_image_first();
    while (i && !atom_is_object(i)) i = inlay_image_next(i);
    return (Obj *)i;
}

Obj *GetNextObj(Obj *o)
{
    inlay_image *i = inlay_image_next(atom_image(o));
    while (i && !atom_is_object(i)) i = inlay_image_next(i);
    return (Obj *)i;
}

Obj *GetPrevObj(Obj *o)
{
    Obj *before = NULL;
    for (Obj *i = GetFirstObj(); i && i != o; i = GetNextObj(i)) before = i;
    return before;
}

Obj *GetLastObj(void)
{
    Obj *last = NULL;
    for (Obj *i = GetFirstObj(); i; i = GetNextObj(i)) last = i;
    return last;
}

Proc *GetFirstObjProc(Obj *o) { return (Proc *)inlay_image_proc_first(atom_image(o)); }
Proc *GetNextProc(Proc *p) { return (Proc *)inlay_proc_next(atom_proc(p)); }

Proc *GetLastObjProc(Obj *o)
{
    Proc *last = NULL;
    for (Proc *p = GetFirstObjProc(o); p; p = GetNextProc(p)) last = p;
    return last;
}

Proc *GetPrevProc(Proc *p)
{
    Proc *before = NULL;
    for (Proc *q = GetFirstObjProc(GetProcObj(p)); q && q != p; q = GetNextProc(q)) before = q;
    return before;
}

static Obj *object(void) { return atom_now.object ? atom_now.object : GetFirstObj(); }
Proc *GetFirstProc(void) { return object() ? GetFirstObjProc(object()) : NULL; }
Proc *GetLastProc(void) { return object() ? GetLastObjProc(object()) : NULL; }
Obj *GetProcObj(Proc *p) { return (Obj *)inlay_proc_image(atom_proc(p)); }

/* One entry each: where its first block begins. */
Entry *GetFirstEntry(Proc *p) { return (Entry *)p; }
Entry *GetLastEntry(Proc *p) { return (Entry *)p; }
Entry *GetNextEntry(Entry *e) { return (void)e, NULL; }
Entry *GetPrevEntry(Entry *e) { return (void)e, NULL; }
Proc *GetEntryProc(Entry *e) { return (Proc *)e; }
Block *GetEntryBlock(Entry *e) { return GetFirstBlock(GetEntryProc(e)); }

bool atom_is_stub(inlay_proc *p) { return inlay_proc_known(p, NULL) == INLAY_LEFT; }

static Block *shown(Proc *p, inlay_block *b) { return atom_is_stub(atom_proc(p)) ? NULL : (Block *)b; }
Block *GetFirstBlock(Proc *p) { return shown(p, inlay_proc_block_first(atom_proc(p))); }
Block *GetLastBlock(Proc *p) { return shown(p, inlay_proc_block_last(atom_proc(p))); }
Block *GetNextBlock(Block *b) { return (Block *)inlay_block_next(atom_block(b)); }
Block *GetPrevBlock(Block *b) { return (Block *)inlay_block_prev(atom_block(b)); }
Proc *GetBlockProc(Block *b) { return (Proc *)inlay_block_proc(atom_block(b)); }

Inst *GetFirstInst(Block *b) { return (Inst *)inlay_block_first(atom_block(b)); }
Inst *GetLastInst(Block *b) { return (Inst *)inlay_block_last(atom_block(b)); }
Inst *GetNextInst(Inst *i) { return (Inst *)inlay_insn_next(atom_insn(i)); }
Inst *GetPrevInst(Inst *i) { return (Inst *)inlay_insn_prev(atom_insn(i)); }
Block *GetInstBlock(Inst *i) { return (Block *)inlay_insn_block(atom_insn(i)); }
Proc *GetInstProc(Inst *i) { return (Proc *)inlay_insn_proc(atom_insn(i)); }

Inst *GetInstBranchTarget(Inst *i)
{
    uint64_t target = inlay_insn_target(atom_insn(i));
    return target ? (Inst *)inlay_insn_at(target) : NULL;
}
