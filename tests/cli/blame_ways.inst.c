/* ATOM's two files that go wrong: this one while it instruments. */
#include "blame_ways.h"

#include <cmplrs/atom.inst.h>

void Instrument(int argc, char **argv, Obj *object)
{
    Proc *p = GetNamedProc("main");
    AddCallProto("Analysis()");
    wrong_at("instrument");
    if (p) AddCallProc(p, ProcBefore, "Analysis");
}
