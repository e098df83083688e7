/* Looks "labs" up for each object, as Tru64's own tools do; with the argument `all`, having each object in hand itself.
 * Its calls are counted where the procedure is told. */
#include <stdio.h>
#include <string.h>
#include <cmplrs/atom.inst.h>

static int told, known;

static void look(Obj *o)
{
    ProcRes r;
    ResolveNamedProc("labs", &r);
    if (r.obj && !strcmp(r.name, "labs")) known++;
    if (!r.proc) return;
    if (r.obj != o) told += 100;
    told++;
    AddCallProc(r.proc, ProcBefore, "Called");
}

/* What is called has no name where it is a stub of nothing, as static position-independent programs have one. */
static void targets(Obj *o)
{
    Proc *p;
    Block *b;
    Inst *i;
    for (p = GetFirstObjProc(o); p; p = GetNextProc(p))
        for (b = GetFirstBlock(p); b; b = GetNextBlock(b))
            for (i = GetFirstInst(b); i; i = GetNextInst(i))
                if (!GetTargetProc(i) != !GetTargetObj(i) || (GetTargetName(i) && !GetTargetProc(i))) told += 100;
}

static void threads(Obj *o)
{
    if (ThreadCreationObj() == o) AddCallProc(ThreadCreationProc(), ProcBefore, "Begins");
    if (ThreadTerminationObj() == o) AddCallProc(ThreadTerminationProc(), ProcBefore, "Ends");
}

static void protos(void)
{
    AddCallProto("Called()");
    AddCallProto("Begins()");
    AddCallProto("Ends()");
    AddCallProto("Report(int, int, int)");
}

#ifdef ALL
unsigned InstrumentAll(int argc, char **argv)
{
    Obj *o;
    ProcRes before;
    protos();
    for (o = GetFirstObj(); o; o = GetNextObj(o)) {
        if (IsObjBuilt(o) || BuildObj(o) || !IsObjBuilt(o)) return 1;
        look(o);
        threads(o);
        WriteObj(o);
        if (IsObjBuilt(o)) return 1;
    }
    ResolveNamedProc("labs", &before);
    if (before.proc || !before.obj) return 1;
    BuildObj(before.obj);
    ReResolveProc(&before);
    if (!before.proc) return 1;
    ReleaseObj(before.obj);
    AddCallProgram(ProgramAfter, "Report", (int)GetProgInfo(ProgNumberObjects), known, told);
    return 0;
}
#else
void InstrumentInit(int argc, char **argv) { protos(); }

Instrument(int argc, char **argv, Obj *o)
{
    look(o);
    targets(o);
    threads(o);
}

void InstrumentFini(void) { AddCallProgram(ProgramAfter, "Report", (int)GetProgInfo(ProgNumberObjects), known, told); }
#endif
