/* ATOM's interface for instrumentation files, on Inlay. docs/atom.md tells what each name means on this
 * machine. Also reached as <cmplrs/atom.inst.h>.
 *
 *     #include <instrument.h>
 *     Instrument(int argc, char **argv, Obj *obj)
 *     {
 *         AddCallProto("Reference(VALUE)");
 *         ... walk, AddCallInst(i, InstBefore, "Reference", EffAddrValue) ...
 *         AddCallProgram(ProgramAfter, "PrintResults");
 *     }
 *
 * Names and numbers are those of Tru64 UNIX; what stands here besides says so. Handles are good until the program has
 * been instrumented. */
#ifndef INLAY_COMPAT_INSTRUMENT_H
#define INLAY_COMPAT_INSTRUMENT_H

#include <atom_regs.h> /* of the instruction set */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct atom_obj Obj;     /* the program, or a shared library that is instrumented with it */
typedef struct atom_proc Proc;
typedef struct atom_entry Entry; /* where a procedure is entered: one each */
typedef struct atom_block Block;
typedef struct atom_inst Inst;
typedef struct atom_xlate Xlate;

/* --- what the tool may define: Instrument(int, char **, Obj *), or without arguments; and these. Old
 * tools write no types, so that they cannot be declared here. */
#ifdef __cplusplus
unsigned InstrumentAll(int argc, char **argv); /* instead of the others; nonzero: failed */
void InstrumentInit(int argc, char **argv);
void InstrumentFini(void);
#endif

/* --- adding calls --- */
typedef enum PlaceType {
    ProgramBefore, ProgramAfter, ProcBefore, ProcAfter, BlockBefore, BlockAfter, InstBefore, InstAfter,
    ObjBefore, ObjAfter, EntryBefore
} PlaceType;

/* Arguments where the prototype says VALUE. */
typedef enum ValueType {
    BrCondValue,    /* 1: the branch will be taken */
    EffAddrValue,   /* address of the instruction's first load or store */
    ArgValue,       /* next argument of the procedure that is entered */
    ArgVectorValue, /* address of the arguments on its stack */
    ReplAddrValue,  /* address of the procedure that is entered */
    LoadAddrValue,  /* not in ATOM: where the instruction loads from, which may not be where it */
    StoreAddrValue  /* stores to */
} ValueType;

/* Arguments where the prototype says REGV or FREGV, and what instructions use. REG_0, REG_1, ... are the general
 * registers by the machine's numbers, FREG_0, ... the vector registers; atom_regs.h has the names for roles. */
typedef enum RegvType {
    REG_0, REG_1, REG_2, REG_3, REG_4, REG_5, REG_6, REG_7,
    REG_8, REG_9, REG_10, REG_11, REG_12, REG_13, REG_14, REG_15,
    REG_16, REG_17, REG_18, REG_19, REG_20, REG_21, REG_22, REG_23,
    REG_24, REG_25, REG_26, REG_27, REG_28, REG_29, REG_30, REG_31,
    FREG_0, FREG_1, FREG_2, FREG_3, FREG_4, FREG_5, FREG_6, FREG_7,
    FREG_8, FREG_9, FREG_10, FREG_11, FREG_12, FREG_13, FREG_14, FREG_15,
    FREG_16, FREG_17, FREG_18, FREG_19, FREG_20, FREG_21, FREG_22, FREG_23,
    FREG_24, FREG_25, FREG_26, FREG_27, FREG_28, FREG_29, FREG_30, FREG_31,
    REG_PC,  /* original address of the place */
    REG_CC,  /* time-stamp counter */
    REG_IPC, /* as REG_PC: the address of instrumented code is nobody's business */
    REG_MAX = REG_IPC,
    REG_NOTUSED = -1, /* GetInstRegEnum: there is none */
    ATOM_REG_ROLES
} RegvType;

void AddCallProto(const char *prototype);
void AddCallProgram(PlaceType, const char *routine, ...);
void AddCallObj(Obj *, PlaceType, const char *routine, ...);
void AddCallProc(Proc *, PlaceType, const char *routine, ...);
void AddCallEntry(Entry *, PlaceType, const char *routine, ...);
void AddCallBlock(Block *, PlaceType, const char *routine, ...);
void AddCallInst(Inst *, PlaceType, const char *routine, ...);
/* The routine has the arguments and the result (integers and pointers) of what it takes the place of. */
void ReplaceProcedure(Proc *, const char *routine);
void ReplaceProto(const char *prototype);
void ReplaceEntry(Entry *, const char *routine, ...);
void ReplaceAndRetainEntry(Entry *, const char *routine);

/* --- walking --- */
Obj *GetFirstObj(void);
Obj *GetLastObj(void);
Obj *GetNextObj(Obj *);
Obj *GetPrevObj(Obj *);
Proc *GetFirstObjProc(Obj *);
Proc *GetLastObjProc(Obj *);
Proc *GetNextProc(Proc *);
Proc *GetPrevProc(Proc *);
Entry *GetFirstEntry(Proc *);
Entry *GetLastEntry(Proc *);
Entry *GetNextEntry(Entry *);
Entry *GetPrevEntry(Entry *);
Block *GetFirstBlock(Proc *);
Block *GetLastBlock(Proc *);
Block *GetNextBlock(Block *);
Block *GetPrevBlock(Block *);
Inst *GetFirstInst(Block *);
Inst *GetLastInst(Block *);
Inst *GetNextInst(Inst *);
Inst *GetPrevInst(Inst *);
Obj *GetProcObj(Proc *);
Proc *GetEntryProc(Entry *);
Block *GetEntryBlock(Entry *);
Proc *GetBlockProc(Block *);
Block *GetInstBlock(Inst *);
Proc *GetInstProc(Inst *);
Inst *GetInstBranchTarget(Inst *); /* of a direct branch or call; NULL: not in this object */

/* --- the program and its objects --- */
typedef enum ProgInfoType {
    ProgNumberObjects, ProgNumInstObjects, ProgNumErrantShlibs,
    ProgNumberObjs = ProgNumberObjects /* Inlay's */
} ProgInfoType;
typedef enum ObjInfoType {
    ObjTextStartAddress, ObjTextSize, ObjInitDataStartAddress, ObjInitDataSize, ObjUninitDataStartAddress,
    ObjUninitDataSize, ObjNumberBlocks, ObjNumberProcs, ObjNumberInsts, ObjID,
    ObjModifyHint,    /* an ObjModifyType */
    ObjSymResolution, /* an ObjSymResType */
    ObjShared,        /* an ObjSharedType */
    ObjNumberEntries,
    ObjTextStart = ObjTextStartAddress, ObjDataStart = ObjInitDataStartAddress, ObjDataSize = ObjInitDataSize,
    ObjBssStart = ObjUninitDataStartAddress, ObjBssSize = ObjUninitDataSize /* Inlay's */
} ObjInfoType;
typedef enum ObjModifyType { OBJ_READONLY, OBJ_WRITEABLE, OBJ_AUTOMATIC } ObjModifyType;
typedef enum ObjSymResType { OBJ_STANDARD, OBJ_SYMBOLIC } ObjSymResType;
typedef enum ObjSharedType { OBJ_NON_SHARED, OBJ_CALL_SHARED, OBJ_SHARABLE } ObjSharedType;
typedef enum ShlibErrType {
    SHLIB_NOTOPEN, SHLIB_NOTFOUND, SHLIB_STRIPPED, SHLIB_CMRLC_VERSION, SHLIB_RELOC_NONE, SHLIB_BADMAGIC,
    SHLIB_NO_FINI_EXIT, SHLIB_NO_INIT, SHLIB_NZMAGIC_AFTER_TIF, SHLIB_VERSION
} ShlibErrType;
long GetProgInfo(ProgInfoType);
const char *GetAnalName(void);
long GetObjInfo(Obj *, ObjInfoType);
const char *GetObjName(Obj *);
const char *GetObjOutName(Obj *); /* the same: objects keep their names */
/* The object's instructions in order, each as GetInstInfo's InstBinary has it. */
const unsigned int *GetObjInstArray(Obj *);
long GetObjInstCount(Obj *);
/* Libraries that could not be instrumented, from 0 to ProgNumErrantShlibs: Inlay refuses the program instead. */
const char *GetErrantShlibName(int);
ShlibErrType GetErrantShlibErr(int);

/* --- procedures --- */
typedef enum ProcInfoType {
    ProcFrameSize,
    ProcIRegMask,   /* general registers that it saves, bits by RegvType */
    ProcIRegOffset, /* of where, from the frame's upper end */
    ProcFRegMask, ProcFRegOffset,
    ProcgpPrologue, ProcgpUsed, /* there is no global pointer: 0 */
    ProcLocalOffset,            /* of the local variables' upper end, from the frame's */
    ProcFrameReg,               /* by which the frame is addressed */
    ProcPcReg,                  /* that holds the return address at its entry */
    ProcNumberBlocks, ProcNumberInsts, ProcID,
    ProcLineLow, ProcLineHigh,
    ProcAddrTaken,
    ProcIsRegFrame,     /* the return address stays in a register */
    ProcSymRes,         /* a ProcSymResType */
    ProcIpBrJmp,        /* it jumps to other procedures */
    ProcExceptionFrame, /* it catches exceptions */
    ProcHasAltEntries, ProcNumberEntries,
    ProcSpSetOffset,       /* from its beginning to the instruction that makes the frame */
    ProcEntryLengthOffset, /* and to the one behind the prologue */
    ProcRegMask = ProcIRegMask, ProcFirstLine = ProcLineLow, ProcLastLine = ProcLineHigh,
    ProcAddressTaken = ProcAddrTaken /* Inlay's */
} ProcInfoType;
typedef enum ProcSymResType {
    SYMRES_NONE, SYMRES_EXPORT, SYMRES_EXPORT_WEAK, SYMRES_EXTERN, SYMRES_STATIC
} ProcSymResType;
long GetProcInfo(Proc *, ProcInfoType);
const char *ProcName(Proc *);     /* NULL: it has none */
const char *ProcFileName(Proc *); /* NULL: not known */
long ProcPC(Proc *);
long ProcGP(Proc *); /* 0 */

/* --- entries --- */
typedef enum EntryInfoType { EntryIsRedundant } EntryInfoType;
long GetEntryInfo(Entry *, EntryInfoType); /* 0 */
const char *EntryName(Entry *);
long EntryPC(Entry *);

/* --- blocks --- */
typedef enum BlockInfoType { BlockNumberInsts, BlockID } BlockInfoType;
long GetBlockInfo(Block *, BlockInfoType);
long BlockPC(Block *);
unsigned IsBranchTarget(Block *);

/* --- instructions --- */
typedef enum ITypeType { /* an instruction may be of several types */
    InstTypeLoad, InstTypeStore, InstTypeJump, InstTypeFP, InstTypeInt, InstTypeDiv, InstTypeMul, InstTypeAdd,
    InstTypeSub, InstTypeCondBr, InstTypeUncondBr, InstTypeMem, InstTypeNop, InstTypeRet
} ITypeType;
typedef ITypeType InstType; /* Inlay's */
typedef enum IClassType {   /* and is of one class */
    ClassLoad, ClassFload, ClassStore, ClassFstore, ClassIbranch, ClassFbranch, ClassSubroutine, ClassIarithmetic,
    ClassImultiplyl, ClassImultiplyq, ClassIlogical, ClassIshift, ClassIcondmove, ClassIcompare, ClassFpop,
    ClassFdivs, ClassFdivd, ClassNull, ClassMem,
    InstClassCall = ClassSubroutine, InstClassBranch = ClassIbranch, InstClassLoad = ClassLoad,
    InstClassStore = ClassStore, InstClassLoadStore = ClassMem, InstClassFPLoad = ClassFload,
    InstClassFPStore = ClassFstore, InstClassCompare = ClassIcompare, InstClassLogic = ClassIlogical,
    InstClassShift = ClassIshift, InstClassMul = ClassImultiplyq, InstClassCondMove = ClassIcondmove,
    InstClassInt = ClassIarithmetic, InstClassFP = ClassFpop, InstClassFPDiv = ClassFdivd,
    InstClassOther = ClassNull /* Inlay's */
} IClassType;
typedef IClassType InstClassType; /* Inlay's */
typedef enum InstInfoType {
    InstMemDisp,    /* displacement of the memory operand */
    InstBrDisp,     /* distance of a direct branch from the next instruction, in bytes */
    InstRA,         /* register that is written, or that is stored */
    InstRB,         /* base register of the memory operand */
    InstRC,         /* index register of the memory operand */
    InstOpcode,     /* Alpha's for what goes elsewhere: 0x1a, 0x30, 0x34; else 64 and Inlay's of the mnemonic */
    InstBinary,     /* the first four bytes, the first one lowest */
    InstAddrTaken,  /* data or code holds its address */
    InstEntryPoint, /* a procedure begins here */
    InstIpJmp,      /* an indirect jump that leaves the procedure */
    InstIpBr,       /* a direct one */
    InstContext,    /* an InstContextType */
    InstStackPtrValid, InstFramePtrValid, /* the prologue has set them before it */
    InstRaRegValid                        /* the return address is in its register */
} InstInfoType;
typedef enum InstContextType { IN_CONTEXT, NON_CONTEXT, NON_CONTEXT_STACK, CONTEXT_UNKNOWN } InstContextType;
/* Registers that an instruction reads, and writes: bit n % 64 of word n / 64 by RegvType. */
typedef struct inst_reg_usage {
    union {
        unsigned long ureg_bitvec[2], reads;
    };
    union {
        unsigned long dreg_bitvec[2], writes;
    };
} InstRegUsageVec;
typedef InstRegUsageVec InstRegUsage; /* Inlay's */
#define UseRegBitVec(x)  ((x)->ureg_bitvec)
#define DestRegBitVec(x) ((x)->dreg_bitvec)
IClassType GetInstClass(Inst *);
int IsInstType(Inst *, ITypeType);
int GetInstInfo(Inst *, InstInfoType);
int GetInstBinary(long pc);
RegvType GetInstRegEnum(Inst *, InstInfoType); /* InstRA, InstRB, InstRC; REG_NOTUSED: none */
void GetInstRegUsage(Inst *, InstRegUsageVec *);
long InstPC(Inst *);
long InstLineNo(Inst *); /* 0: not known */

/* --- finding by name, and what is called --- */
Obj *FindObj(const char *name); /* that defines the procedure; else that is called so */
Proc *FindProc(Obj *, const char *name);
Entry *FindEntry(Obj *, const char *name);
Inst *FindInst(Obj *, const char *name);
Obj *FindObjDepthFirst(Obj *, const char *name); /* the same, from this object on */
Obj *GetTargetObj(Inst *);
Proc *GetTargetProc(Inst *);
Entry *GetTargetEntry(Inst *);
Inst *GetTargetInst(Inst *);
const char *GetTargetName(Inst *);
/* Answers of the routines below. While objects are in hand (Instrument's; those that InstrumentAll has built and not
 * yet written), `proc` is told for what they define, so that each procedure is told once; `obj` for all objects. */
typedef struct ProcRes {
    Obj *obj;
    Proc *proc; /* NULL: not in what is in hand, or instrumented */
    const char *name;
    Inst *inst; /* its first */
} ProcRes;
void ResolveTargetProc(Inst *, ProcRes *);
void ResolveNamedProc(const char *name, ProcRes *);
void ResolveObjNamedProc(Obj *, const char *name, ProcRes *);
void ReResolveProc(ProcRes *);

/* --- objects under full control (InstrumentAll) --- */
unsigned BuildObj(Obj *); /* 0: done */
unsigned IsObjBuilt(Obj *);
void WriteObj(Obj *);
void ReleaseObj(Obj *);

/* --- lists of addresses for analysis routines (XLATE *) --- */
#define XLATE_NOSIZE ((unsigned)-1)
Xlate *CreateXlate(Obj *, unsigned size); /* how many there will be; 0, XLATE_NOSIZE: not known */
void AddXlateAddress(Xlate *, Inst *);
void AddXlateEntry(Xlate *, Entry *);

/* --- threads: all are seen to, whatever the options say; 0: agreed --- */
typedef enum ThreadOptions { THREAD_PTHREAD = 1, THREAD_FORK = 2, THREAD_FLOAT = 4 } ThreadOptions;
int ThreadExcludeObj(Obj *, unsigned long options);
int ThreadExcludeProc(Obj *, Proc *, unsigned long options);
/* What each thread but the first passes when it begins and ends, as the C library calls it; NULL: not there. */
Obj *ThreadCreationObj(void);
Proc *ThreadCreationProc(void);
Obj *ThreadTerminationObj(void);
Proc *ThreadTerminationProc(void);

/* --- obsolete --- */
typedef enum PInfoType {
    TextStartAddress, TextSize, InitDataStartAddress, InitDataSize, UninitDataStartAddress, UninitDataSize,
    ProgramNumberBlocks, ProgramNumberProcs, ProgramNumberInsts
} PInfoType;
typedef PInfoType ProgramInfoType; /* Inlay's */
#define FrameSize   ProcFrameSize
#define IRegMask    ProcIRegMask
#define IRegOffset  ProcIRegOffset
#define FRegMask    ProcFRegMask
#define FRegOffset  ProcFRegOffset
#define gpPrologue  ProcgpPrologue
#define gpUsed      ProcgpUsed
#define LocalOffset ProcLocalOffset
#define FrameReg    ProcFrameReg
#define PcReg       ProcPcReg
#define IInfoType   InstInfoType
#define RET_RES_1   REG_RETVAL
/* Of the object that Instrument was called for or that was built last, else of the program. */
Proc *GetFirstProc(void);
Proc *GetLastProc(void);
const char *GetProgramName(void);
char *GetOutName(void);
long GetProgramInfo(PInfoType);
const unsigned int *GetProgramInstArray(void);
long GetProgramInstCount(void);
Proc *GetProcCalled(Inst *);
Proc *GetNamedProc(const char *name); /* in any object, whatever is in hand */
Obj *GetNamedProcObj(const char *name);
const char *GetInstProcCalled(Inst *);
/* Not to be had: the tool is refused (ThreadTerminationProc and AddCallProc, pthread_atfork). */
int ThreadExitCall(Obj *, unsigned long options, const char *routine);
int ThreadForkCall(Obj *, unsigned long options, const char *before, const char *after);

#ifdef __cplusplus
}
#endif

#endif
