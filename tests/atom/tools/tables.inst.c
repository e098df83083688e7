/* Counts the calls of labs with Tru64's routines for threads, on two sides: the analysis side is two files. */
#include <stdio.h>
#include <cmplrs/atom.inst.h>

Instrument(int argc, char **argv, Obj *o)
{
    Proc *p = GetNamedProc("body");
    AddCallProto("Open()");
    AddCallProto("Entered()");
    AddCallProto("Close()");
    AddCallProgram(ProgramBefore, "Open");
    AddCallProc(p, ProcBefore, "Entered");
    AddCallProgram(ProgramAfter, "Close");
}
