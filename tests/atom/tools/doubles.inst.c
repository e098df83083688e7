/* Hands floating-point registers to its routines, with and without other arguments. */
#include <stdio.h>
#include <instrument.h>

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p = GetNamedProc("scaled");

    AddCallProto("Two(FREGV, FREGV)");
    AddCallProto("Mixed(long, FREGV, VALUE, FREGV)");
    AddCallProto("Simple(FREGV)");
    AddCallProto("Report()");
    if (p == NULL) return;
    AddCallProc(p, ProcBefore, "Two", FREG_1, FREG_0);
    AddCallProc(p, ProcBefore, "Mixed", 3L, FREG_2, ArgValue, FREG_1);
    AddCallProc(p, ProcBefore, "Simple", FREG_2);
    AddCallProgram(ProgramAfter, "Report");
}
