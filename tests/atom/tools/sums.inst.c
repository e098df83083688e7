/* Adds the routines that the arguments name: at each block with its number and length, and at each load and store
 * where its address is wanted. "step" instead of all: only at the procedure of this name. */
#include <stdio.h>
#include <string.h>
#include <instrument.h>

static int named(int argc, char **argv, char *name)
{
    int i;
    for (i = 1; i < argc; i++)
        if (!strcmp(argv[i], name)) return 1;
    return 0;
}

InstrumentInit(int argc, char **argv)
{
    AddCallProto("Begin()");
    AddCallProto("Plain(long)");
    AddCallProto("Cells(int)");
    AddCallProto("Table(long, long)");
    AddCallProto("Shared()");
    AddCallProto("Mixed(VALUE)");
    AddCallProto("Seen(long)");
    AddCallProto("Look()");
    AddCallProto("Taken(long)");
    AddCallProto("LookThrough()");
    AddCallProto("Walking(long)");
    AddCallProto("Walk()");
    AddCallProto("Value(VALUE)");
    AddCallProto("Maybe(long)");
    AddCallProto("Asks(long)");
    AddCallProto("Called(long)");
    AddCallProto("Library(long)");
    AddCallProto("Report()");
    AddCallProgram(ProgramBefore, "Begin");
    AddCallProgram(ProgramAfter, "Report");
}

static void at_block(int argc, char **argv, Block *b, int k)
{
    static char *by_length[] = {"Plain", "Seen", "Taken", "Walking", "Maybe", "Asks", "Called", "Library", 0};
    static char *alone[] = {"Shared", "Look", "LookThrough", "Walk", 0};
    long n = GetBlockInfo(b, BlockNumberInsts);
    int i;
    for (i = 0; by_length[i]; i++)
        if (named(argc, argv, by_length[i])) AddCallBlock(b, k & 1 ? BlockBefore : BlockAfter, by_length[i], n);
    for (i = 0; alone[i]; i++)
        if (named(argc, argv, alone[i])) AddCallBlock(b, BlockBefore, alone[i]);
    if (named(argc, argv, "Cells")) AddCallBlock(b, BlockBefore, "Cells", -k);
    if (named(argc, argv, "Table")) AddCallBlock(b, BlockBefore, "Table", (long)k, n);
}

static void at_inst(int argc, char **argv, Inst *i)
{
    static char *names[] = {"Mixed", "Value", 0};
    int k;
    if (!IsInstType(i, InstTypeLoad) && !IsInstType(i, InstTypeStore)) return;
    for (k = 0; names[k]; k++)
        if (named(argc, argv, names[k])) AddCallInst(i, InstBefore, names[k], EffAddrValue);
    if (named(argc, argv, "after") && IsInstType(i, InstTypeCondBr)) AddCallInst(i, InstAfter, "Plain", 1L);
}

static void at_proc(int argc, char **argv, Proc *p)
{
    static int k;
    Block *b;
    Inst *i;
    if (named(argc, argv, "ends")) {
        AddCallProc(p, ProcBefore, "Plain", 1000L);
        AddCallProc(p, ProcAfter, "Table", (long)k, 100L);
    }
    for (b = GetFirstBlock(p); b != NULL; b = GetNextBlock(b)) {
        at_block(argc, argv, b, k++);
        for (i = GetFirstInst(b); i != NULL; i = GetNextInst(i)) at_inst(argc, argv, i);
    }
}

Instrument(int argc, char **argv, Obj *obj)
{
    Proc *p;
    for (p = GetFirstObjProc(obj); p != NULL; p = GetNextProc(p)) {
        if (!named(argc, argv, "step")) at_proc(argc, argv, p);
        else if (ProcName(p) && !strcmp(ProcName(p), "step")) at_proc(argc, argv, p);
    }
}
