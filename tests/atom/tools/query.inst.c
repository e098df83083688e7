/* Asks everything of known.S and prints the answers. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <instrument.h>

static Xlate *list;

static void say(char *what, long n) { AddCallProgram(ProgramAfter, "Answer", what, n); }

static void types(Inst *i)
{
    static char *names[] = {"Load", "Store", "Jump", "FP", "Int", "Div", "Mul", "Add", "Sub", "CondBr", "UncondBr",
                            "Mem", "Nop", "Ret"};
    char text[400];
    int k;
    strcpy(text, "types:");
    for (k = InstTypeLoad; k <= InstTypeRet; k++)
        if (IsInstType(i, k)) strcat(strcat(text, " "), names[k]);
    say(text, GetInstClass(i));
}

static void about_proc(Proc *p)
{
    Block *b;
    Inst *i;
    InstRegUsage use;
    say(ProcName(p), ProcPC(p));
    say("blocks", GetProcInfo(p, ProcNumberBlocks));
    say("insts", GetProcInfo(p, ProcNumberInsts));
    say("parent", GetProcObj(p) == GetFirstObj() && GetEntryProc(GetFirstEntry(p)) == p);
    for (b = GetFirstBlock(p); b; b = GetNextBlock(b)) {
        say(IsBranchTarget(b) ? "target" : "block", BlockPC(b));
        say("length", GetBlockInfo(b, BlockNumberInsts));
        if (GetBlockProc(b) != p || (GetNextBlock(b) && GetPrevBlock(GetNextBlock(b)) != b)) abort();
        for (i = GetFirstInst(b); i; i = GetNextInst(i)) {
            types(i);
            GetInstRegUsage(i, &use);
            say("uses", use.reads);
            say("sets", use.writes);
            say("RA", GetInstRegEnum(i, InstRA));
            say("RC", GetInstRegEnum(i, InstRC));
            if (GetInstBranchTarget(i)) say("goes to", InstPC(GetInstBranchTarget(i)));
            if (GetProcCalled(i)) say(GetTargetName(i), GetProcCalled(i) == GetNamedProc("leaf"));
            if (GetInstBlock(i) != b || GetInstBinary(InstPC(i)) != GetInstInfo(i, InstBinary)) abort();
            if (i == GetLastInst(b)) AddXlateAddress(list, i);
        }
    }
}

unsigned InstrumentAll(int argc, char **argv)
{
    ProcRes r;
    Proc *p;
    Obj *o = GetFirstObj();
    AddCallProto("Answer(char *, long)");
    AddCallProto("List(XLATE *)");
    if (IsObjBuilt(o) || BuildObj(o) || !IsObjBuilt(o)) return 1;
    list = CreateXlate(o, 0);
    say("objects", GetProgInfo(ProgNumberObjs));
    say("procs", GetObjInfo(o, ObjNumberProcs));
    say("blocks", GetProgramInfo(ProgramNumberBlocks));
    say("insts", GetObjInfo(o, ObjNumberInsts));
    say("array", (GetObjInstArray(o)[0] & 0xffff) == 0xc031 && GetObjInstCount(o) == GetObjInfo(o, ObjNumberInsts));
    say("data", GetObjInfo(o, ObjDataSize));
    for (p = GetFirstObjProc(o); p; p = GetNextProc(p)) about_proc(p);
    ResolveNamedProc("leaf", &r);
    say(r.name, r.inst == GetFirstInst(GetFirstBlock(FindProc(o, "leaf"))) && r.obj == o);
    say("no such", GetNamedProc("nothing") != NULL);
    say("last", GetLastObjProc(o) == r.proc && GetLastObj() == o && !GetNextObj(o) && !GetPrevObj(o));
    say(GetPrevProc(r.proc) == GetNamedProc("walk") ? "prev" : "no prev", strlen(GetObjName(o)) > 5);
    AddCallProgram(ProgramAfter, "List", list);
    WriteObj(o);
    ReleaseObj(o);
    return 0;
}
