/* Asks what Tru64's names ask of facts.S, and prints the answers. */
#include <stdio.h>
#include <string.h>
#include <cmplrs/atom.inst.h>

static void say(char *what, long n) { AddCallProgram(ProgramAfter, "Answer", what, n); }

static void about_proc(Proc *p)
{
    static struct {
        char *name;
        ProcInfoType what;
    } asked[] = {{"frame", ProcFrameSize}, {"saved", ProcIRegMask}, {"saved at", ProcIRegOffset},
                 {"locals at", ProcLocalOffset}, {"base", ProcFrameReg}, {"return in", ProcPcReg},
                 {"taken", ProcAddrTaken}, {"symbol", ProcSymRes}, {"leaves", ProcIpBrJmp}, {"catches", ProcExceptionFrame},
                 {"entries", ProcNumberEntries}, {"moves sp", ProcSpSetOffset}, {"prologue", ProcEntryLengthOffset},
                 {"floats", ProcFRegMask}, {"gp", ProcgpUsed}, {"old", FrameSize}};
    unsigned k;
    say((char *)EntryName(GetFirstEntry(p)), GetEntryInfo(GetFirstEntry(p), EntryIsRedundant) + ProcGP(p));
    for (k = 0; k < sizeof asked / sizeof *asked; k++) say(asked[k].name, GetProcInfo(p, asked[k].what));
}

static void about_inst(Inst *i)
{
    static char text[200];
    InstRegUsageVec use;
    GetInstRegUsage(i, &use);
    sprintf(text, "%d: class %d, opcode %x, taken %d, entry %d, out %d %d, valid %d %d %d, reads %lx, writes %lx, %lx %lx",
            (int)(InstPC(i) - ProcPC(GetInstProc(i))), GetInstClass(i),
            GetInstInfo(i, InstOpcode) < 64 ? GetInstInfo(i, InstOpcode) : 64, GetInstInfo(i, InstAddrTaken),
            GetInstInfo(i, InstEntryPoint), GetInstInfo(i, InstIpJmp), GetInstInfo(i, InstIpBr),
            GetInstInfo(i, InstStackPtrValid), GetInstInfo(i, InstFramePtrValid), GetInstInfo(i, InstRaRegValid),
            UseRegBitVec(&use)[0], DestRegBitVec(&use)[0], use.ureg_bitvec[1], use.dreg_bitvec[1]);
    say(text, GetInstInfo(i, InstContext) == CONTEXT_UNKNOWN);
    if (GetTargetName(i)) say((char *)GetInstProcCalled(i), GetTargetInst(i) == GetFirstInst(GetFirstBlock(GetTargetProc(i))));
}

Instrument(int argc, char **argv, Obj *o)
{
    Proc *p;
    Block *b;
    Inst *i;
    ProcRes r;
    AddCallProto("Answer(char *, long)");
    say("text", GetObjInfo(o, ObjTextStartAddress) == GetProgramInfo(TextStartAddress));
    say("text has", GetProgramInfo(TextSize) > 0 && GetObjInfo(o, ObjTextSize) == GetProgramInfo(TextSize));
    say("data", GetObjInfo(o, ObjInitDataSize));
    say("bss", GetObjInfo(o, ObjUninitDataSize) / 4096);
    say("bss at", GetObjInfo(o, ObjUninitDataStartAddress) - GetObjInfo(o, ObjInitDataStartAddress));
    say("hint", GetObjInfo(o, ObjModifyHint));
    say("shared", GetObjInfo(o, ObjShared));
    say("symbolic", GetObjInfo(o, ObjSymResolution));
    say("entries", GetObjInfo(o, ObjNumberEntries));
    say("objects", GetProgInfo(ProgNumberObjects) * 10 + GetProgInfo(ProgNumInstObjects) + GetProgInfo(ProgNumErrantShlibs));
    say("program", !strcmp(GetProgramName(), GetObjName(o)) && !strcmp(GetOutName(), GetObjOutName(o)));
    say("array", GetProgramInstCount() == GetObjInstCount(o) && GetProgramInstArray()[0] == GetObjInstArray(o)[0]);
    say("named", GetNamedProcObj("kinds") == o && FindObj("kinds") == o && FindObjDepthFirst(o, "kinds") == o);
    say("no such", FindObj("nothing") || FindObjDepthFirst(o, "nothing") || GetErrantShlibName(0));
    say("threads", ThreadCreationProc() || ThreadTerminationObj());
    say("agreed", ThreadExcludeObj(o, THREAD_PTHREAD | THREAD_FORK));
    ResolveObjNamedProc(o, "kinds", &r);
    say((char *)r.name, r.proc == FindProc(o, "kinds") && r.obj == o && r.inst == FindInst(o, "kinds"));
    for (p = GetFirstObjProc(o); p; p = GetNextProc(p)) {
        about_proc(p);
        for (b = GetFirstBlock(p); b; b = GetNextBlock(b))
            for (i = GetFirstInst(b); i; i = GetNextInst(i)) about_inst(i);
    }
}
