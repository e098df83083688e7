/* The names that ATOM kept for older tools: of a program that is one object, and calls of threads. */
#include "atom/state.h"

const char *GetProgramName(void) { return GetFirstObj() ? GetObjName(GetFirstObj()) : NULL; }
char *GetOutName(void) { return GetFirstObj() ? (char *)GetObjOutName(GetFirstObj()) : NULL; }
const unsigned *GetProgramInstArray(void) { return GetFirstObj() ? GetObjInstArray(GetFirstObj()) : NULL; }
long GetProgramInstCount(void) { return GetFirstObj() ? GetObjInstCount(GetFirstObj()) : 0; }

long GetProgramInfo(PInfoType what)
{
    static const ObjInfoType same[] = {
        [TextStartAddress] = ObjTextStartAddress,
        [TextSize] = ObjTextSize,
        [InitDataStartAddress] = ObjInitDataStartAddress,
        [InitDataSize] = ObjInitDataSize,
        [UninitDataStartAddress] = ObjUninitDataStartAddress,
        [UninitDataSize] = ObjUninitDataSize,
        [ProgramNumberBlocks] = ObjNumberBlocks,
        [ProgramNumberProcs] = ObjNumberProcs,
        [ProgramNumberInsts] = ObjNumberInsts,
    };
    if (!GetFirstObj() || (unsigned)what >= sizeof same / sizeof *same) return 0;
    return GetObjInfo(GetFirstObj(), same[what]);
}

Obj *GetNamedProcObj(const char *name) { return FindObj(name); }
const char *GetInstProcCalled(Inst *i) { return GetTargetName(i); }

int ThreadExitCall(Obj *o, unsigned long options, const char *routine)
{
    (void)o, (void)options;
    atom_fail("ThreadExitCall(%s): not available; add the call to ThreadTerminationProc() with AddCallProc", routine);
}

int ThreadForkCall(Obj *o, unsigned long options, const char *before, const char *after)
{
    (void)o, (void)options;
    atom_fail("ThreadForkCall(%s, %s): not available; add calls to the procedure fork with AddCallProc",
              before ? before : "NULL", after ? after : "NULL");
}
