/* Adding calls of analysis routines, and replacing procedures.
 *
 * An import stub only jumps, to what may lie in an object that is not
 * instrumented. So calls at a stub are added where the object calls it: before the call instruction, and
 * behind it. */
#include "atom/isa.h"
#include "atom/state.h"

typedef struct place { /* what arguments are computed from */
    const char *what;
    uint64_t pc;
    inlay_insn *insn; /* NULL: none in particular */
    inlay_proc *proc; /* entered here; else NULL */
    uint64_t back;    /* at a call instruction: where it returns to */
} place;

/* --- arguments --- */

static inlay_expr address_of(const place *at, bool write)
{
    int k = at->insn ? atom_operand(at->insn, write) : -1;
    if (k < 0) return NULL;
    return inlay_insn_memory(at->insn, (unsigned)k).masked ? inlay_element_address((unsigned)k, 0)
                                                           : inlay_effective_address((unsigned)k);
}

static inlay_expr value_of(const place *at, ValueType value, unsigned *next_argument)
{
    switch (value) {
    case EffAddrValue:
        if (at->insn && atom_operand(at->insn, false) < 0) return address_of(at, true);
        return address_of(at, false);
    case LoadAddrValue: return address_of(at, false);
    case StoreAddrValue: return address_of(at, true);
    case BrCondValue: return at->insn && inlay_insn_is_branch(at->insn) ? inlay_taken() : NULL;
    case ArgValue: return at->proc ? inlay_argument((*next_argument)++) : NULL;
    case ArgVectorValue:
        if (!at->proc) return NULL;
        return inlay_binary(INLAY_ADD, inlay_stack_pointer(), inlay_const(at->back ? 0 : atom_isa_return_bytes()));
    case ReplAddrValue: return at->proc ? inlay_const(inlay_proc_address(at->proc)) : NULL;
    }
    return NULL;
}

static inlay_expr register_of(const place *at, RegvType reg)
{
    switch ((int)reg) {
    case REG_PC:
    case REG_IPC: return inlay_const(at->pc);
    case REG_CC: return inlay_cycles();
    case REG_RA: return at->back ? inlay_const(at->back) : inlay_return_address();
    case REG_GP:
    case REG_ZERO: return inlay_const(0);
    default: break;
    }
    if (reg == REG_SP) return inlay_stack_pointer();
    if (reg < REG_0 || reg > REG_31) return NULL;
    return inlay_reg_kind_of((inlay_reg)reg) == INLAY_REG_GENERAL ? inlay_register((inlay_reg)reg) : inlay_const(0);
}

static inlay_expr argument(const place *at, const atom_arg *a, unsigned *next_argument)
{
    switch (a->kind) {
    case ATOM_VALUE: return value_of(at, (ValueType)a->value, next_argument);
    case ATOM_REGV: return register_of(at, (RegvType)(int)a->value);
    case ATOM_FREGV:
        if ((int)a->value < FREG_0 || (int)a->value > FREG_31) return NULL;
        return inlay_vector_register((unsigned)a->value - FREG_0);
    default: return inlay_const(a->value);
    }
}

static const char *why_not(const atom_arg *a)
{
    static const char *const of[] = {[EffAddrValue] = "EffAddrValue is of an instruction that accesses memory",
                                     [BrCondValue] = "BrCondValue is of a branch",
                                     [ArgValue] = "ArgValue is of a procedure or entry",
                                     [ArgVectorValue] = "ArgVectorValue is of a procedure or entry",
                                     [ReplAddrValue] = "ReplAddrValue is of a procedure or entry",
                                     [LoadAddrValue] = "LoadAddrValue is of an instruction that loads",
                                     [StoreAddrValue] = "StoreAddrValue is of an instruction that stores"};
    if (a->kind != ATOM_VALUE) return "there is no register of this number";
    bool known = a->value < sizeof of / sizeof *of && of[a->value];
    return known ? of[a->value] : "there is no such VALUE";
}

static inlay_expr call(const place *at, const atom_proto *p, const atom_arg *args)
{
    inlay_expr list[ATOM_MAX_ARGS];
    unsigned next_argument = 0;
    for (unsigned i = 0; i < p->count; i++) {
        list[i] = argument(at, &args[i], &next_argument);
        if (!list[i])
            atom_fail("%s: argument %u of %s is not to be had at 0x%llx: %s", at->what, i + 1, p->name,
                      (unsigned long long)at->pc, why_not(&args[i]));
    }
    return inlay_call_array(p->code, p->count, list);
}

static void wrong_place(const char *what) { atom_fail("%s: there is no such place", what); }

/* Tools pass on what a search has answered. */
static void need(const void *handle, const char *what)
{
    if (!handle) atom_fail("%s: called with NULL", what);
}

/* --- the program and objects --- */

static void remember(atom_list *l, const char *what, const atom_proto *p, const atom_arg *args)
{
    atom_call *c = atom_alloc(sizeof *c);
    *c = (atom_call){.code = p->code, .count = p->count};
    for (unsigned i = 0; i < p->count; i++) {
        if (args[i].kind == ATOM_VALUE || args[i].kind == ATOM_REGV || args[i].kind == ATOM_FREGV)
            atom_fail("%s: argument %u of %s has no value there", what, i + 1, p->name);
        c->args[i] = args[i].value;
    }
    if (l->last) l->last->next = c;
    else l->first = c;
    l->last = c;
}

#define ARGUMENTS(routine)                                                                                             \
    const atom_proto *proto = atom_proto_named(routine);                                                               \
    atom_arg args[ATOM_MAX_ARGS];                                                                                      \
    va_list list;                                                                                                      \
    va_start(list, routine);                                                                                           \
    atom_args(proto, &list, args);                                                                                     \
    va_end(list)

void AddCallProgram(PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    atom_state *s = atom_now.travels;
    if (where != ProgramBefore && where != ProgramAfter) wrong_place("AddCallProgram");
    remember(where == ProgramBefore ? &s->program_before : &s->program_after, "AddCallProgram", proto, args);
}

void AddCallObj(Obj *o, PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(o, "AddCallObj");
    atom_state *s = atom_now.travels;
    if (where != ObjBefore && where != ObjAfter) wrong_place("AddCallObj");
    remember(where == ObjBefore ? &s->object_before : &s->object_after, "AddCallObj", proto, args);
}

/* --- instructions and blocks --- */

static bool is_of_one_way(const inlay_insn *i) /* nothing comes behind it */
{
    return inlay_insn_is_return(i) ||
           (inlay_insn_is_branch(i) && !inlay_insn_is_conditional(i) && !inlay_insn_is_call(i));
}

/* The instruction behind a call or a system call, where nothing else leads to it; NULL otherwise. */
static inlay_insn *only_behind(inlay_insn *i)
{
    const unsigned others = INLAY_BLOCK_ENTRY | INLAY_BLOCK_TARGET | INLAY_BLOCK_LANDING | INLAY_BLOCK_ADDRESS_TAKEN |
                            INLAY_BLOCK_OUTSIDE;
    inlay_insn *next = inlay_insn_next(i);
    if (next) return next;
    inlay_block *b = inlay_block_at(inlay_insn_address(i) + inlay_insn_size(i));
    return b && !(inlay_block_flags(b) & others) ? inlay_block_first(b) : NULL;
}

/* A place where nothing is added: the first few of each kind. */
static void tell_left(unsigned *met, const char *what, const char *whose, const char *which, inlay_insn *i,
                      const char *why)
{
    enum { MOST = 3 };
    if (++*met <= MOST)
        inlay_warn("%s: %s%s at 0x%llx%s%s", what, whose, which, (unsigned long long)inlay_insn_address(i), why,
                   *met == MOST ? " (more such places are not told)" : "");
}

static void add_after(inlay_insn *i, const place *at, const atom_proto *p, const atom_arg *args)
{
    if (inlay_insn_falls_through(i)) {
        inlay_insert(inlay_after(i), call(at, p, args));
    } else if (inlay_insn_is_conditional(i)) {
        inlay_expr code = call(at, p, args);
        inlay_insert(inlay_before(i), inlay_if(inlay_unary(INLAY_LNOT, inlay_taken()), code, NULL));
    } else if (!is_of_one_way(i)) {
        inlay_insn *next = only_behind(i);
        place behind = *at;
        behind.insn = NULL;
        if (next) inlay_insert(inlay_before(next), call(&behind, p, args));
        else
            tell_left(&atom_now.not_behind, at->what, "", "nothing can be added behind the call", i,
                      ": other ways lead there too");
    }
}

void AddCallInst(Inst *inst, PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(inst, "AddCallInst");
    inlay_insn *i = atom_insn(inst);
    place at = {.what = "AddCallInst", .pc = inlay_insn_address(i), .insn = i};
    if (where == InstBefore) inlay_insert(inlay_before(i), call(&at, proto, args));
    else if (where == InstAfter) add_after(i, &at, proto, args);
    else wrong_place(at.what);
}

void AddCallBlock(Block *block, PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(block, "AddCallBlock");
    inlay_block *b = atom_block(block);
    place at = {.what = "AddCallBlock", .pc = inlay_block_address(b)};
    if (where == BlockBefore) {
        inlay_insert(inlay_block_entry(b), call(&at, proto, args));
    } else if (where == BlockAfter) {
        at.insn = inlay_block_last(b);
        at.pc = inlay_insn_address(at.insn);
        inlay_point *p = inlay_insn_falls_through(at.insn) ? inlay_after(at.insn) : inlay_before(at.insn);
        inlay_insert(p, call(&at, proto, args));
    } else {
        wrong_place(at.what);
    }
}

/* --- procedures --- */

static void add_to_calls(inlay_proc *stub, bool before, const atom_proto *proto, const atom_arg *args)
{
    inlay_image *image = inlay_proc_image(stub);
    for (inlay_proc *p = inlay_image_proc_first(image); p; p = inlay_proc_next(p))
        for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
            inlay_insn *i = inlay_block_last(b);
            bool is_stub = atom_is_stub(p); /* they jump to their common one to be bound: nobody's call */
            if (is_stub || inlay_insn_target(i) != inlay_proc_address(stub)) continue;
            bool calls = inlay_insn_is_call(i);
            place at = {.what = "AddCallProc",
                        .pc = inlay_proc_address(stub),
                        .proc = stub,
                        .back = calls ? inlay_insn_address(i) + inlay_insn_size(i) : 0};
            inlay_point *point = inlay_insn_is_conditional(i) ? inlay_taken_edge(i) : inlay_before(i);
            if (before) inlay_insert(point, call(&at, proto, args));
            else if (calls) add_after(i, &at, proto, args);
            else
                tell_left(&atom_now.not_ends, at.what, inlay_proc_name(stub), " is jumped to", i,
                          "; its end is not seen there");
        }
}

static void add_to_proc(inlay_proc *p, PlaceType where, const char *what, const atom_proto *proto, const atom_arg *args)
{
    bool before = where == ProcBefore || where == EntryBefore;
    if (atom_is_stub(p)) {
        add_to_calls(p, before, proto, args);
        return;
    }
    place at = {.what = what, .pc = inlay_proc_address(p), .proc = before ? p : NULL};
    inlay_insert(before ? inlay_proc_entry(p) : inlay_proc_exit(p), call(&at, proto, args));
}

void AddCallProc(Proc *proc, PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(proc, "AddCallProc");
    if (where != ProcBefore && where != ProcAfter) wrong_place("AddCallProc");
    add_to_proc(atom_proc(proc), where, "AddCallProc", proto, args);
}

void AddCallEntry(Entry *entry, PlaceType where, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(entry, "AddCallEntry");
    if (where != EntryBefore) wrong_place("AddCallEntry");
    add_to_proc(atom_entry_proc(entry), where, "AddCallEntry", proto, args);
}

/* --- replacing --- */

static void replace(inlay_proc *p, inlay_expr result, const char *what)
{
    if (!inlay_proc_replace(p, result)) atom_fail("%s: %s cannot be replaced", what, inlay_proc_name(p));
}

void ReplaceProcedure(Proc *proc, const char *routine)
{
    enum { REGISTERS = 6 };
    inlay_expr args[REGISTERS];
    need(proc, "ReplaceProcedure");
    for (unsigned i = 0; i < REGISTERS; i++) args[i] = inlay_argument(i);
    replace(atom_proc(proc), inlay_call_array(atom_routine_named(routine), REGISTERS, args), "ReplaceProcedure");
}

void ReplaceEntry(Entry *entry, const char *routine, ...)
{
    ARGUMENTS(routine);
    need(entry, "ReplaceEntry");
    inlay_proc *p = atom_entry_proc(entry);
    place at = {.what = "ReplaceEntry", .pc = inlay_proc_address(p), .proc = p};
    replace(p, call(&at, proto, args), at.what);
}

/* The routine runs, and then the procedure after all. */
void ReplaceAndRetainEntry(Entry *entry, const char *routine)
{
    inlay_expr args[ATOM_MAX_ARGS];
    const atom_proto *p = atom_proto_named(routine);
    need(entry, "ReplaceAndRetainEntry");
    for (unsigned i = 0; i < p->count; i++) args[i] = inlay_argument(i);
    inlay_insert(inlay_proc_entry(atom_entry_proc(entry)), inlay_call_array(p->code, p->count, args));
}
