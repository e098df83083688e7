// Tru64's names have Tru64's numbers and signatures, and Inlay's older ones stand for the same.
#include <cmplrs/atom.inst.h>

#define LIST(...) \
    { \
        const int list[] = {__VA_ARGS__}; \
        for (unsigned i = 0; i < sizeof list / sizeof *list; i++) good = good && list[i] == (int)i; \
    } \
    sets++
#define SAME(a, b) static_assert((a) == (b), #a)

static bool numbers(int &sets)
{
    bool good = true;
    LIST(ProgNumberObjects, ProgNumInstObjects, ProgNumErrantShlibs);
    LIST(ObjTextStartAddress, ObjTextSize, ObjInitDataStartAddress, ObjInitDataSize, ObjUninitDataStartAddress,
         ObjUninitDataSize, ObjNumberBlocks, ObjNumberProcs, ObjNumberInsts, ObjID, ObjModifyHint, ObjSymResolution,
         ObjShared, ObjNumberEntries);
    LIST(ProcFrameSize, ProcIRegMask, ProcIRegOffset, ProcFRegMask, ProcFRegOffset, ProcgpPrologue, ProcgpUsed,
         ProcLocalOffset, ProcFrameReg, ProcPcReg, ProcNumberBlocks, ProcNumberInsts, ProcID, ProcLineLow, ProcLineHigh,
         ProcAddrTaken, ProcIsRegFrame, ProcSymRes, ProcIpBrJmp, ProcExceptionFrame, ProcHasAltEntries,
         ProcNumberEntries, ProcSpSetOffset, ProcEntryLengthOffset);
    LIST(FrameSize, IRegMask, IRegOffset, FRegMask, FRegOffset, gpPrologue, gpUsed, LocalOffset, FrameReg, PcReg);
    LIST(EntryIsRedundant);
    LIST(BlockNumberInsts, BlockID);
    LIST(InstMemDisp, InstBrDisp, InstRA, InstRB, InstRC, InstOpcode, InstBinary, InstAddrTaken, InstEntryPoint,
         InstIpJmp, InstIpBr, InstContext, InstStackPtrValid, InstFramePtrValid, InstRaRegValid);
    LIST(ClassLoad, ClassFload, ClassStore, ClassFstore, ClassIbranch, ClassFbranch, ClassSubroutine, ClassIarithmetic,
         ClassImultiplyl, ClassImultiplyq, ClassIlogical, ClassIshift, ClassIcondmove, ClassIcompare, ClassFpop,
         ClassFdivs, ClassFdivd, ClassNull, ClassMem);
    LIST(InstTypeLoad, InstTypeStore, InstTypeJump, InstTypeFP, InstTypeInt, InstTypeDiv, InstTypeMul, InstTypeAdd,
         InstTypeSub, InstTypeCondBr, InstTypeUncondBr, InstTypeMem, InstTypeNop, InstTypeRet);
    LIST(BrCondValue, EffAddrValue, ArgValue, ArgVectorValue, ReplAddrValue);
    LIST(ProgramBefore, ProgramAfter, ProcBefore, ProcAfter, BlockBefore, BlockAfter, InstBefore, InstAfter, ObjBefore,
         ObjAfter, EntryBefore);
    LIST(OBJ_READONLY, OBJ_WRITEABLE, OBJ_AUTOMATIC);
    LIST(OBJ_STANDARD, OBJ_SYMBOLIC);
    LIST(OBJ_NON_SHARED, OBJ_CALL_SHARED, OBJ_SHARABLE);
    LIST(SYMRES_NONE, SYMRES_EXPORT, SYMRES_EXPORT_WEAK, SYMRES_EXTERN, SYMRES_STATIC);
    LIST(IN_CONTEXT, NON_CONTEXT, NON_CONTEXT_STACK, CONTEXT_UNKNOWN);
    LIST(SHLIB_NOTOPEN, SHLIB_NOTFOUND, SHLIB_STRIPPED, SHLIB_CMRLC_VERSION, SHLIB_RELOC_NONE, SHLIB_BADMAGIC,
         SHLIB_NO_FINI_EXIT, SHLIB_NO_INIT, SHLIB_NZMAGIC_AFTER_TIF, SHLIB_VERSION);
    LIST(TextStartAddress, TextSize, InitDataStartAddress, InitDataSize, UninitDataStartAddress, UninitDataSize,
         ProgramNumberBlocks, ProgramNumberProcs, ProgramNumberInsts);
    return good;
}

SAME(REG_31, 31); SAME(FREG_0, 32); SAME(FREG_31, 63); SAME(REG_PC, 64); SAME(REG_CC, 65); SAME(REG_IPC, 66);
SAME(REG_MAX, REG_IPC); SAME(REG_NOTUSED, -1); SAME(RET_RES_1, REG_RETVAL); SAME(REG_RETVAL, REG_0);
SAME(FREG_RETVAL, FREG_0); SAME(XLATE_NOSIZE, 0xffffffff);
SAME(THREAD_PTHREAD, 1); SAME(THREAD_FORK, 2); SAME(THREAD_FLOAT, 4);
SAME(ProgNumberObjs, ProgNumberObjects); SAME(ObjTextStart, ObjTextStartAddress); SAME(ObjBssSize, ObjUninitDataSize);
SAME(ObjDataStart, ObjInitDataStartAddress); SAME(ObjDataSize, ObjInitDataSize);
SAME(ObjBssStart, ObjUninitDataStartAddress); SAME(ProcRegMask, ProcIRegMask); SAME(ProcFirstLine, ProcLineLow);
SAME(ProcLastLine, ProcLineHigh); SAME(ProcAddressTaken, ProcAddrTaken); SAME(InstClassCall, ClassSubroutine);
SAME(InstClassBranch, ClassIbranch); SAME(InstClassLoadStore, ClassMem); SAME(InstClassOther, ClassNull);
static_assert(REG_RA != REG_ZERO && REG_GP != REG_ZERO && REG_SP != REG_ZERO && FREG_ARG_1 < FREG_ARG_6, "roles");

// Each is what Tru64 declares: assigned without a cast.
static int (*const f1)(Obj *, unsigned long) = ThreadExcludeObj;
static int (*const f2)(Obj *, Proc *, unsigned long) = ThreadExcludeProc;
static Obj *(*const f3)(void) = ThreadCreationObj;
static Proc *(*const f4)(void) = ThreadTerminationProc;
static int (*const f5)(Obj *, unsigned long, const char *) = ThreadExitCall;
static int (*const f6)(Obj *, unsigned long, const char *, const char *) = ThreadForkCall;
static void (*const f7)(Obj *, const char *, ProcRes *) = ResolveObjNamedProc;
static Obj *(*const f8)(Obj *, const char *) = FindObjDepthFirst;
static const char *(*const f9)(Inst *) = GetInstProcCalled;
static const char *(*const f10)(void) = GetProgramName;
static char *(*const f11)(void) = GetOutName;
static const unsigned *(*const f12)(void) = GetProgramInstArray;
static long (*const f13)(void) = GetProgramInstCount;
static Obj *(*const f14)(const char *) = GetNamedProcObj;
static IClassType (*const f15)(Inst *) = GetInstClass;
static int (*const f16)(Inst *, ITypeType) = IsInstType;
static void (*const f17)(Inst *, InstRegUsageVec *) = GetInstRegUsage;
static long (*const f18)(Entry *, EntryInfoType) = GetEntryInfo;
static const char *(*const f19)(int) = GetErrantShlibName;
static ShlibErrType (*const f20)(int) = GetErrantShlibErr;
static long (*const f21)(PInfoType) = GetProgramInfo;
static int (*const f22)(Inst *, IInfoType) = GetInstInfo;
static long (*const f23)(Proc *) = ProcGP;

extern "C" int Instrument(int, char **, Obj *)
{
    static const void *const all[] = {
        (void *)f1,  (void *)f2,  (void *)f3,  (void *)f4,  (void *)f5,  (void *)f6,  (void *)f7,  (void *)f8,
        (void *)f9,  (void *)f10, (void *)f11, (void *)f12, (void *)f13, (void *)f14, (void *)f15, (void *)f16,
        (void *)f17, (void *)f18, (void *)f19, (void *)f20, (void *)f21, (void *)f22, (void *)f23};
    int sets = 0;
    AddCallProto("Answer(int, int, long)");
    bool good = numbers(sets);
    AddCallProgram(ProgramAfter, "Answer", sets, (int)good, (long)(sizeof all / sizeof *all));
    return 0;
}
