/* How many bytes does the program ask to read? */
#include <stdio.h>
#include <instrument.h>

Instrument()
{
    static int seen;
    Proc *p;

    if (seen++) return;
    AddCallProto("Asked(REGV)");
    AddCallProto("Report()");
    p = GetNamedProc("read");
    if (p != NULL) AddCallProc(p, ProcBefore, "Asked", REG_ARG_3);
    AddCallProgram(ProgramAfter, "Report");
}
