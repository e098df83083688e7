/* Loads that bring what the register held already. */
#include <stdio.h>
#include <instrument.h>

static int loads;

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Open(int)");
    AddCallProto("Before(REGV)");
    AddCallProto("After(int, REGV)");
    AddCallProto("Line(int, long)");
    AddCallProto("Close()");
}

static int is_audited(Inst *i)
{
    RegvType to = GetInstRegEnum(i, InstRA);
    return GetInstClass(i) == InstClassLoad && to != REG_ZERO && to != REG_SP;
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    Block *b;
    Inst *i;

    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p))
        for (b = GetFirstBlock(p); b != NULL; b = GetNextBlock(b))
            for (i = GetFirstInst(b); i != NULL; i = GetNextInst(i)) {
                if (!is_audited(i)) continue;
                AddCallInst(i, InstBefore, "Before", GetInstRegEnum(i, InstRA));
                AddCallInst(i, InstAfter, "After", loads, GetInstRegEnum(i, InstRA));
                AddCallProgram(ProgramAfter, "Line", loads++, InstPC(i));
            }
}

InstrumentFini()
{
    AddCallProgram(ProgramBefore, "Open", loads);
    AddCallProgram(ProgramAfter, "Close");
}
