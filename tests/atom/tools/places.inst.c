/* Each place and each value once, on known.S. */
#include <stdio.h>
#include <instrument.h>

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *walk = GetNamedProc("walk"), *leaf = GetNamedProc("leaf"), *start = GetNamedProc("_start");
    Block *b;
    Inst *i;
    int n = 0;

    AddCallProto("Hit(int)");
    AddCallProto("Value(int, VALUE)");
    AddCallProto("Register(int, REGV)");
    AddCallProto("Replaced(VALUE, VALUE, REGV, REGV)");
    AddCallProto("Report()");
    AddCallProc(walk, ProcBefore, "Hit", 0);
    AddCallProc(walk, ProcAfter, "Hit", 1);
    AddCallEntry(GetFirstEntry(leaf), EntryBefore, "Hit", 2);
    for (b = GetFirstBlock(start); b; b = GetNextBlock(b)) {
        AddCallBlock(b, BlockBefore, "Hit", 3);
        AddCallBlock(b, BlockAfter, "Hit", 4);
        for (i = GetFirstInst(b); i; i = GetNextInst(i)) {
            AddCallInst(i, InstBefore, "Hit", 5);
            if (IsInstType(i, InstTypeCondBr)) {
                AddCallInst(i, InstBefore, "Value", 6, BrCondValue);
                AddCallInst(i, InstAfter, "Hit", 7);
            }
            if (GetProcCalled(i)) AddCallInst(i, InstAfter, "Register", 8, REG_RETVAL);
        }
    }
    i = GetFirstInst(GetFirstBlock(leaf));
    AddCallInst(i, InstAfter, "Register", 9, REG_3);             /* rbx was cleared */
    AddCallInst(GetNextInst(i), InstAfter, "Register", 10, REG_3); /* and is 7 */
    AddCallProc(leaf, ProcAfter, "Register", 10, REG_3);
    AddCallProc(leaf, ProcBefore, "Replaced", ReplAddrValue, ArgValue, REG_PC, REG_RA);
    AddCallProc(leaf, ProcBefore, "Register", 11, REG_ZERO);
    AddCallProgram(ProgramAfter, "Report");
}
