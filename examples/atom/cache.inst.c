/* A direct-mapped data cache of 64 KB with lines of 32 bytes: how many references miss? */
#include <stdio.h>
#include <instrument.h>

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Reference(VALUE)");
    AddCallProto("Report()");
    AddCallProgram(ProgramAfter, "Report");
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    Block *b;
    Inst *i;

    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p))
        for (b = GetFirstBlock(p); b != NULL; b = GetNextBlock(b))
            for (i = GetFirstInst(b); i != NULL; i = GetNextInst(i))
                if (IsInstType(i, InstTypeLoad) || IsInstType(i, InstTypeStore))
                    AddCallInst(i, InstBefore, "Reference", EffAddrValue);
}
