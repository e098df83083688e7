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
 * The numbers behind the names are Inlay's own. Handles are good until the program has been instrumented. */
#ifndef INLAY_COMPAT_INSTRUMENT_H
#define INLAY_COMPAT_INSTRUMENT_H

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
    ProgramBefore, ProgramAfter, ObjBefore, ObjAfter, ProcBefore, ProcAfter,
    BlockBefore, BlockAfter, InstBefore, InstAfter, EntryBefore
} PlaceType;

/* Arguments where the prototype says VALUE. */
typedef enum ValueType {
    EffAddrValue,   /* address of the instruction's first load or store */
    BrCondValue,    /* 1: the branch will be taken */
    ArgValue,       /* next argument of the procedure that is entered */
    ArgVectorValue, /* address of the arguments on its stack */
    ReplAddrValue,  /* address of the procedure that is entered */
    LoadAddrValue,  /* not in ATOM: where the instruction loads from, which may not be where it */
    StoreAddrValue  /* stores to */
} ValueType;

/* Arguments where the prototype says REGV or FREGV. REG_0 to REG_15 are the general registers by the
 * machine's numbering; the names for roles are what the calling convention says. */
typedef enum RegvType {
    REG_0, REG_1, REG_2, REG_3, REG_4, REG_5, REG_6, REG_7,
    REG_8, REG_9, REG_10, REG_11, REG_12, REG_13, REG_14, REG_15,
    REG_16, REG_17, REG_18, REG_19, REG_20, REG_21, REG_22, REG_23,
    REG_24, REG_25, REG_26, REG_27, REG_28, REG_29, REG_30, REG_31,
    FREG_0, FREG_1, FREG_2, FREG_3, FREG_4, FREG_5, FREG_6, FREG_7,
    FREG_8, FREG_9, FREG_10, FREG_11, FREG_12, FREG_13, FREG_14, FREG_15,
    FREG_16, FREG_17, FREG_18, FREG_19, FREG_20, FREG_21, FREG_22, FREG_23,
    FREG_24, FREG_25, FREG_26, FREG_27, FREG_28, FREG_29, FREG_30, FREG_31,
    REG_PC,   /* original address of the place */
    REG_IPC,  /* the same: the address of instrumented code is nobody's business */
    REG_CC,   /* time-stamp counter */
    REG_RA,   /* the return address, at a procedure's entry */
    REG_GP,   /* there is none: 0 */
    REG_ZERO, /* 0 */
    REG_RETVAL = REG_0,
    REG_SP = REG_4,
    REG_ARG_1 = REG_7, REG_ARG_2 = REG_6, REG_ARG_3 = REG_2,
    REG_ARG_4 = REG_1, REG_ARG_5 = REG_8, REG_ARG_6 = REG_9
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
Proc *GetFirstProc(void); /* of the object that Instrument was called for, else the program */
Proc *GetLastProc(void);
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
typedef enum ProgInfoType { ProgNumberObjs } ProgInfoType;
typedef enum ProgramInfoType { ProgramNumberProcs, ProgramNumberBlocks, ProgramNumberInsts } ProgramInfoType;
typedef enum ObjInfoType {
    ObjID, ObjNumberProcs, ObjNumberEntries, ObjNumberBlocks, ObjNumberInsts,
    ObjTextStart, ObjTextSize, ObjDataStart, ObjDataSize, ObjBssStart, ObjBssSize
} ObjInfoType;
long GetProgInfo(ProgInfoType);
long GetProgramInfo(ProgramInfoType); /* of the program's own object */
const char *GetAnalName(void);
long GetObjInfo(Obj *, ObjInfoType);
const char *GetObjName(Obj *);
const char *GetObjOutName(Obj *); /* the same: objects keep their names */
/* The object's instructions in order, each as GetInstInfo's InstBinary has it. */
const unsigned int *GetObjInstArray(Obj *);
long GetObjInstCount(Obj *);

/* --- procedures --- */
typedef enum ProcInfoType {
    ProcID, ProcNumberEntries, ProcNumberBlocks, ProcNumberInsts, ProcFrameSize,
    ProcRegMask, /* registers that it saves, bits by RegvType */
    ProcFirstLine, ProcLastLine, ProcAddressTaken
} ProcInfoType;
long GetProcInfo(Proc *, ProcInfoType);
const char *ProcName(Proc *);     /* NULL: it has none */
const char *ProcFileName(Proc *); /* NULL: not known */
long ProcPC(Proc *);
long EntryPC(Entry *);

/* --- blocks --- */
typedef enum BlockInfoType { BlockNumberInsts, BlockID } BlockInfoType;
long GetBlockInfo(Block *, BlockInfoType);
long BlockPC(Block *);
unsigned IsBranchTarget(Block *);

/* --- instructions --- */
typedef enum InstType { /* an instruction may be of several types */
    InstTypeLoad, InstTypeStore, InstTypeMem, InstTypeJump, InstTypeCondBr, InstTypeUncondBr, InstTypeRet,
    InstTypeFP, InstTypeInt, InstTypeAdd, InstTypeSub, InstTypeMul, InstTypeDiv, InstTypeNop
} InstType;
typedef enum InstClassType { /* and is of one class */
    InstClassCall, InstClassBranch, InstClassLoad, InstClassStore, InstClassLoadStore, InstClassFPLoad,
    InstClassFPStore, InstClassCompare, InstClassLogic, InstClassShift, InstClassMul, InstClassCondMove,
    InstClassInt, InstClassFP, InstClassFPDiv, InstClassOther
} InstClassType;
typedef enum InstInfoType {
    InstMemDisp,    /* displacement of the memory operand */
    InstBrDisp,     /* distance of a direct branch from the next instruction, in bytes */
    InstRA,         /* register that is written, or that is stored */
    InstRB,         /* base register of the memory operand */
    InstRC,         /* index register of the memory operand */
    InstOpcode,     /* Inlay's number of the mnemonic */
    InstBinary      /* the first four bytes, the first one lowest */
} InstInfoType;
typedef struct InstRegUsage { unsigned long reads, writes; } InstRegUsage; /* bits by RegvType */
InstClassType GetInstClass(Inst *);
int IsInstType(Inst *, InstType);
int GetInstInfo(Inst *, InstInfoType);
int GetInstBinary(long pc);
RegvType GetInstRegEnum(Inst *, InstInfoType); /* InstRA, InstRB, InstRC; REG_ZERO: none */
void GetInstRegUsage(Inst *, InstRegUsage *);
long InstPC(Inst *);
long InstLineNo(Inst *); /* 0: not known */

/* --- finding by name, and what is called --- */
typedef struct ProcRes {
    Obj *obj;
    Proc *proc; /* NULL: not in what is instrumented */
    const char *name;
    Inst *inst; /* its first */
} ProcRes;
Proc *GetNamedProc(const char *name); /* in any object; else the program's import stub of that name */
Proc *GetProcCalled(Inst *);
void ResolveTargetProc(Inst *, ProcRes *);
void ResolveNamedProc(const char *name, ProcRes *);
void ReResolveProc(ProcRes *);
Obj *FindObj(const char *name);
Proc *FindProc(Obj *, const char *name);
Entry *FindEntry(Obj *, const char *name);
Inst *FindInst(Obj *, const char *name);
Obj *GetTargetObj(Inst *);
Proc *GetTargetProc(Inst *);
Entry *GetTargetEntry(Inst *);
Inst *GetTargetInst(Inst *);
const char *GetTargetName(Inst *);

/* --- objects under full control (InstrumentAll) --- */
unsigned BuildObj(Obj *); /* 0: done */
unsigned IsObjBuilt(Obj *);
void WriteObj(Obj *);
void ReleaseObj(Obj *);

/* --- lists of addresses for analysis routines (XLATE *) --- */
Xlate *CreateXlate(Obj *, unsigned size); /* how many there will be; 0: not known */
void AddXlateAddress(Xlate *, Inst *);
void AddXlateEntry(Xlate *, Entry *);

/* --- threads --- */
/* `options`: 0. */
int ThreadExcludeObj(Obj *, unsigned long options);
int ThreadExcludeProc(Obj *, Proc *, unsigned long options);

#ifdef __cplusplus
}
#endif

#endif
