/* Finding procedures by name and by what is called. A name that no object defines, but that the program
 * imports, is its import stub "name@plt". */
#include "atom/state.h"

#include <stdio.h>
#include <string.h>

static Proc *stub_in(Obj *o, const char *name)
{
    char stub[1024];
    snprintf(stub, sizeof stub, "%s@plt", name);
    return (Proc *)inlay_image_proc_named(atom_image(o), stub);
}

Proc *FindProc(Obj *o, const char *name)
{
    Proc *p = (Proc *)inlay_image_proc_named(atom_image(o), name);
    return p ? p : stub_in(o, name);
}

Proc *GetNamedProc(const char *name)
{
    Proc *p = NULL;
    for (Obj *o = GetFirstObj(); o && !p; o = GetNextObj(o)) p = (Proc *)inlay_image_proc_named(atom_image(o), name);
    for (Obj *o = GetFirstObj(); o && !p; o = GetNextObj(o)) p = stub_in(o, name);
    return p;
}

Obj *FindObj(const char *name)
{
    for (Obj *o = GetFirstObj(); o; o = GetNextObj(o))
        if (!strcmp(inlay_image_name(atom_image(o)), name) || !strcmp(inlay_image_path(atom_image(o)), name)) return o;
    return NULL;
}

Entry *FindEntry(Obj *o, const char *name) { return (Entry *)FindProc(o, name); }

static Inst *first_of(Proc *p)
{
    Block *b = p ? GetFirstBlock(p) : NULL;
    return b ? GetFirstInst(b) : NULL;
}

Inst *FindInst(Obj *o, const char *name) { return first_of(FindProc(o, name)); }

Proc *GetProcCalled(Inst *i)
{
    uint64_t target = inlay_insn_is_branch(atom_insn(i)) ? inlay_insn_target(atom_insn(i)) : 0;
    inlay_proc *p = target ? inlay_proc_at(target) : NULL;
    return p && inlay_proc_address(p) == target ? (Proc *)p : NULL;
}

Proc *GetTargetProc(Inst *i) { return GetProcCalled(i); }
Entry *GetTargetEntry(Inst *i) { return (Entry *)GetProcCalled(i); }
Inst *GetTargetInst(Inst *i) { return GetInstBranchTarget(i); }

const char *GetTargetName(Inst *i)
{
    Proc *p = GetProcCalled(i);
    return p ? ProcName(p) : NULL;
}

Obj *GetTargetObj(Inst *i)
{
    Proc *p = GetProcCalled(i);
    return p ? GetProcObj(p) : NULL;
}

static void fill(ProcRes *r, Proc *p, const char *name)
{
    *r = (ProcRes){.obj = p ? GetProcObj(p) : NULL, .proc = p, .name = name, .inst = first_of(p)};
}

void ResolveTargetProc(Inst *i, ProcRes *r)
{
    Proc *p = GetProcCalled(i);
    fill(r, p, p ? ProcName(p) : NULL);
}

void ResolveNamedProc(const char *name, ProcRes *r) { fill(r, GetNamedProc(name), name); }

void ReResolveProc(ProcRes *r)
{
    if (!r->proc && r->name) ResolveNamedProc(r->name, r);
}
