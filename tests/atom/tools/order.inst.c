/* Order of calls, copies of arguments, names that both files and the C library have. Written as such tools
 * were: no types where none are needed. */
#pragma ident "order"
#include <stdio.h>
#include <cmplrs/atom.inst.h>

static char name[16];
static helper(k) { return 10 * k; }
char *brk(text) char *text; { return text; }

InstrumentInit(argc, argv) char **argv;
{
    AddCallProto("Say(char *)");
    AddCallProto("Number(int, long, char*)");
    AddCallProto("Sum(int[4], long [2])");
    AddCallProto("void First ( void )");
    AddCallProgram(ProgramAfter, "Say", argc > 1 ? argv[1] : "no argument");
}

Instrument(argc, argv, obj) char **argv; Obj *obj;
{
    int i, four[4];
    long two[2];
    Proc *p = FindProc(obj, "leaf");
    AddCallObj(obj, ObjAfter, "Say", "object ends");
    AddCallObj(obj, ObjBefore, "Say", "object begins");
    for (i = 0; i < 3; i++) {
        sprintf(name, "name %d", i);
        AddCallProgram(ProgramAfter, "Number", helper(i), -1L - i, brk(name));
        four[0] = four[1] = four[2] = four[3] = i;
        two[0] = two[1] = 1L << 40;
        AddCallProgram(ProgramAfter, "Sum", four, two);
    }
    AddCallProc(p, ProcAfter, "Say", "leaf leaves");
    AddCallBlock(GetFirstBlock(p), BlockBefore, "Say", "leaf's block");
    AddCallProc(p, ProcBefore, "Say", "leaf enters");
}

InstrumentFini()
{
    AddCallProgram(ProgramBefore, "First");
}
