/* Blocks of all threads, counted in three ways. */
#include <stdio.h>
#include <instrument.h>

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    Block *b;
    AddCallProto("Open()");
    AddCallProto("Block()");
    AddCallProto("Report()");
    for (p = GetFirstObjProc(obj); p; p = GetNextProc(p))
        for (b = GetFirstBlock(p); b; b = GetNextBlock(b)) AddCallBlock(b, BlockBefore, "Block");
    AddCallProgram(ProgramBefore, "Open");
    AddCallProgram(ProgramAfter, "Report");
    ThreadExcludeObj(obj, 0);
}
