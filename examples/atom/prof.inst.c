/* Instructions executed by each procedure, counted block by block. */
#include <stdio.h>
#include <instrument.h>

static int procs;

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Open(int)");
    AddCallProto("Count(long, long)");
    AddCallProto("Line(int, char *)");
    AddCallProto("Close()");
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    Block *b;
    char name[80];

    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p)) {
        for (b = GetFirstBlock(p); b != NULL; b = GetNextBlock(b))
            AddCallBlock(b, BlockBefore, "Count", (long)procs, GetBlockInfo(b, BlockNumberInsts));
        if (ProcName(p)) snprintf(name, sizeof name, "%s", ProcName(p));
        else sprintf(name, "0x%lx", ProcPC(p));
        AddCallProgram(ProgramAfter, "Line", procs++, name);
    }
}

InstrumentFini()
{
    AddCallProgram(ProgramBefore, "Open", procs);
    AddCallProgram(ProgramAfter, "Close");
}
