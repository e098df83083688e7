/* Who calls whom how often, and the cycles spent in each procedure and in what it calls. */
#include <stdio.h>
#include <string.h>
#include <instrument.h>

static int procs;

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Open(int)");
    AddCallProto("Name(int, char *)");
    AddCallProto("Enter(int, REGV, REGV)");
    AddCallProto("Leave(int, REGV, REGV)");
    AddCallProto("Report()");
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;

    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p)) {
        if (ProcName(p) && strstr(ProcName(p), "@plt")) continue; /* not entered, only passed through */
        AddCallProc(p, ProcBefore, "Enter", procs, REG_SP, REG_CC);
        AddCallProc(p, ProcAfter, "Leave", procs, REG_SP, REG_CC);
        AddCallProgram(ProgramBefore, "Name", procs++, ProcName(p) ? ProcName(p) : "?");
    }
}

InstrumentFini()
{
    AddCallProgram(ProgramBefore, "Open", procs);
    AddCallProgram(ProgramAfter, "Report");
}
