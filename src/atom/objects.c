/* Objects under the tool's control, lists of addresses, threads: the instrumentation side.
 *
 * All objects are analysed when they are first walked and written at the end, so that building one is asking for its
 * code, and writing or releasing it is a remark. But a tool that goes through them one by one has only that one in
 * hand, which is what makes it meet each procedure once. */
#include "atom/state.h"
#include "atom/xlate.h"

#include <string.h>

/* Its place among those that are built; -1: it is not. */
static int built(const Obj *o)
{
    for (unsigned i = 0; i < atom_now.built.count; i++)
        if (atom_now.built.objects[i] == o) return (int)i;
    return -1;
}

unsigned BuildObj(Obj *o)
{
    if (!o || !GetFirstObjProc(o)) return 1;
    if (built(o) < 0 && atom_now.built.count < ATOM_MAX_OBJECTS) atom_now.built.objects[atom_now.built.count++] = o;
    atom_now.ever_built = true;
    atom_now.object = o;
    return 0;
}

unsigned IsObjBuilt(Obj *o) { return built(o) >= 0; }

void ReleaseObj(Obj *o)
{
    int i = built(o);
    if (atom_now.object == o) atom_now.object = NULL;
    if (i >= 0) atom_now.built.objects[i] = atom_now.built.objects[--atom_now.built.count];
}

void WriteObj(Obj *o) { ReleaseObj(o); }

/* A tool that never builds has all in hand, but in Instrument. */
bool atom_in_hand(Obj *o)
{
    if (atom_now.ever_built) return built(o) >= 0;
    return !atom_now.object || atom_now.object == o;
}

/* --- lists of addresses --- */

Xlate *CreateXlate(Obj *o, unsigned size)
{
    Xlate *x = atom_alloc(sizeof *x);
    atom_file f = atom_file_of(atom_image(o));
    x->text = f.text;
    x->text_size = f.text_size;
    x->capacity = size && size != XLATE_NOSIZE ? size : 16;
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

/* The C library's: every thread that it makes begins in the one, and passes the other at its end. */
static Proc *named_anywhere(const char *name)
{
    Obj *o = FindObj(name);
    return o ? FindProc(o, name) : NULL;
}

Proc *ThreadCreationProc(void) { return named_anywhere("start_thread"); }
Proc *ThreadTerminationProc(void) { return named_anywhere("__nptl_deallocate_tsd"); }
Obj *ThreadCreationObj(void) { return ThreadCreationProc() ? GetProcObj(ThreadCreationProc()) : NULL; }
Obj *ThreadTerminationObj(void) { return ThreadTerminationProc() ? GetProcObj(ThreadTerminationProc()) : NULL; }
