/* Objects under the tool's control, lists of addresses, threads: the instrumentation side.
 *
 * All objects are analysed when they are first walked and written at the end, so that building one is
 * asking for its code, and writing or releasing it is a remark. */
#include "atom/state.h"
#include "atom/xlate.h"

#include <string.h>

static bool seen(const Obj *o)
{
    for (unsigned i = 0; i < atom_now.built.count; i++)
        if (atom_now.built.objects[i] == o) return true;
    return false;
}

unsigned BuildObj(Obj *o)
{
    Proc *p = GetFirstObjProc(o);
    if (!p || seen(o)) return !p;
    if (atom_now.built.count < sizeof atom_now.built.objects / sizeof *atom_now.built.objects)
        atom_now.built.objects[atom_now.built.count++] = o;
    atom_now.object = o;
    return 0;
}

unsigned IsObjBuilt(Obj *o) { return seen(o); }
void WriteObj(Obj *o) { BuildObj(o); }

void ReleaseObj(Obj *o)
{
    if (atom_now.object == o) atom_now.object = NULL;
}

/* --- lists of addresses --- */

Xlate *CreateXlate(Obj *o, unsigned size)
{
    Xlate *x = atom_alloc(sizeof *x);
    atom_segments s = atom_segments_of(atom_image(o));
    x->text = s.text;
    x->text_size = s.text_size;
    x->capacity = size ? size : 16;
    x->addresses = atom_alloc(x->capacity * sizeof *x->addresses);
    return x;
}

static void add(Xlate *x, uint64_t address)
{
    if (x->count == x->capacity) {
        uint64_t *more = atom_alloc(2 * x->capacity * sizeof *more);
        memcpy(more, x->addresses, x->count * sizeof *more);
        x->addresses = more;
        x->capacity *= 2;
    }
    x->addresses[x->count++] = address;
}

void AddXlateAddress(Xlate *x, Inst *i) { add(x, inlay_insn_address(atom_insn(i))); }
void AddXlateEntry(Xlate *x, Entry *e) { add(x, (uint64_t)EntryPC(e)); }

/* --- threads: every thread counts, whatever the options; 0: agreed --- */

int ThreadExcludeObj(Obj *o, unsigned long options) { return (void)o, (void)options, 0; }
int ThreadExcludeProc(Obj *o, Proc *p, unsigned long options) { return (void)o, (void)p, (void)options, 0; }
