/* Finding procedures by name and by what is called. A name that no object defines, but that the program imports, is
 * its import stub "name@plt", which is told by the name without the ending. */
#include "atom/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static Proc *defined_in(Obj *o, const char *name) { return (Proc *)inlay_image_proc_named(atom_image(o), name); }

static Proc *stub_in(Obj *o, const char *name)
{
    char stub[1024];
    snprintf(stub, sizeof stub, "%s@plt", name);
    return defined_in(o, stub);
}

/* --- by name --- */

Proc *FindProc(Obj *o, const char *name)
{
    Proc *p = defined_in(o, name);
    return p ? p : stub_in(o, name);
}

/* The first object from `o` on (NULL: of all) that defines it; else the first that imports it. */
static Proc *look_up(Obj *o, const char *name)
{
    Proc *p = o ? defined_in(o, name) : NULL;
    for (Obj *k = GetFirstObj(); k && !p; k = GetNextObj(k)) p = defined_in(k, name);
    if (!p && o) p = stub_in(o, name);
    for (Obj *k = GetFirstObj(); k && !p; k = GetNextObj(k)) p = stub_in(k, name);
    return p;
}

Proc *GetNamedProc(const char *name) { return look_up(NULL, name); }

static Obj *object_named(const char *name)
{
    for (Obj *o = GetFirstObj(); o; o = GetNextObj(o))
        if (!strcmp(inlay_image_name(atom_image(o)), name) || !strcmp(inlay_image_path(atom_image(o)), name)) return o;
    return NULL;
}

Obj *FindObjDepthFirst(Obj *o, const char *name)
{
    Proc *p = look_up(o, name);
    return p ? GetProcObj(p) : NULL;
}

Obj *FindObj(const char *name)
{
    Obj *o = FindObjDepthFirst(NULL, name);
    return o ? o : object_named(name);
}

Entry *FindEntry(Obj *o, const char *name) { return (Entry *)FindProc(o, name); }

static Inst *first_of(Proc *p)
{
    Block *b = p ? GetFirstBlock(p) : NULL;
    return b ? GetFirstInst(b) : NULL;
}

Inst *FindInst(Obj *o, const char *name) { return first_of(FindProc(o, name)); }

/* --- by what is called --- */

Proc *GetProcCalled(Inst *i)
{
    uint64_t target = inlay_insn_is_branch(atom_insn(i)) ? inlay_insn_target(atom_insn(i)) : 0;
    inlay_proc *p = target ? inlay_proc_at(target) : NULL;
    return p && inlay_proc_address(p) == target ? (Proc *)p : NULL;
}

/* The name as the program's source has it; the string lives as long as the image. */
static const char *plain_name(Proc *p)
{
    static const char ending[] = "@plt";
    const char *name = p ? ProcName(p) : NULL;
    size_t n = name ? strlen(name) : 0, k = sizeof ending - 1;
    if (n <= k || !atom_is_stub(atom_proc(p)) || strcmp(name + n - k, ending)) return name;
    char *plain = inlay_proc_record(atom_proc(p), ATOM_NAME_SIZE);
    if (plain && !*plain) snprintf(plain, ATOM_NAME_SIZE, "%.*s", (int)(n - k), name);
    return plain;
}

/* What is called through a stub, where it is instrumented too. A stub that nothing is called by, as the first of a
 * table is, has no name. */
static Proc *target_of(Inst *i)
{
    Proc *p = GetProcCalled(i);
    const char *name = p && atom_is_stub(atom_proc(p)) ? plain_name(p) : NULL;
    return name ? look_up(NULL, name) : p;
}

Proc *GetTargetProc(Inst *i) { return target_of(i); }
Entry *GetTargetEntry(Inst *i) { return (Entry *)target_of(i); }
Inst *GetTargetInst(Inst *i) { return target_of(i) ? first_of(target_of(i)) : GetInstBranchTarget(i); }
const char *GetTargetName(Inst *i) { return plain_name(target_of(i)); }

Obj *GetTargetObj(Inst *i)
{
    Proc *p = target_of(i);
    return p ? GetProcObj(p) : NULL;
}

/* --- answers in which objects that are not in hand have no procedures --- */

static void fill(ProcRes *r, Proc *p, const char *name)
{
    Proc *shown = p && atom_in_hand(GetProcObj(p)) ? p : NULL;
    *r = (ProcRes){.obj = p ? GetProcObj(p) : NULL, .proc = shown, .name = name, .inst = first_of(shown)};
}

void ResolveTargetProc(Inst *i, ProcRes *r) { fill(r, target_of(i), GetTargetName(i)); }
void ResolveNamedProc(const char *name, ProcRes *r) { fill(r, look_up(NULL, name), name); }
void ResolveObjNamedProc(Obj *o, const char *name, ProcRes *r) { fill(r, look_up(o, name), name); }

void ReResolveProc(ProcRes *r)
{
    if (!r->proc && r->name) ResolveObjNamedProc(r->obj, r->name, r);
}
