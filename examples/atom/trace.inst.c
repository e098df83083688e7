/* The addresses of all memory references and all branches, one line each. */
#include <stdio.h>
#include <instrument.h>

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Load(REGV, VALUE)");
    AddCallProto("Store(REGV, VALUE)");
    AddCallProto("Branch(REGV, VALUE)");
    AddCallProto("Close()");
    AddCallProgram(ProgramAfter, "Close");
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    Block *b;
    Inst *i;

    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p))
        for (b = GetFirstBlock(p); b != NULL; b = GetNextBlock(b))
            for (i = GetFirstInst(b); i != NULL; i = GetNextInst(i)) {
                if (IsInstType(i, InstTypeLoad)) AddCallInst(i, InstBefore, "Load", REG_PC, LoadAddrValue);
                if (IsInstType(i, InstTypeStore)) AddCallInst(i, InstBefore, "Store", REG_PC, StoreAddrValue);
                if (IsInstType(i, InstTypeCondBr)) AddCallInst(i, InstBefore, "Branch", REG_PC, BrCondValue);
            }
}
