/* Points and what is inserted at them.
 *
 * Points of code belong to the run that is being shown; their snippets go straight into it. Points of
 * a procedure belong to the procedure: their snippets are kept and put into every run that holds the
 * procedure's first instruction, or a way out of it. */
#include "tool/mutator.h"
#include "cfg/thunks.h"
#include "snippet/typed.h"
#include "tool/code.h"
#include "tool/entered.h"

#include <inlay/point.h>

#include <stdio.h>

static inlay_point *made(inlay_point of)
{
    if (mutator_keeps_points(of.run)) return mutator_point(&of);
    inlay_point *p = tool_snippet_alloc(sizeof *p);
    if (p) *p = of;
    return p;
}

static inlay_point *point(point_kind kind, weave_run *run, uint32_t index, inlay_proc *proc)
{
    return made((inlay_point){.kind = kind, .index = index, .run = run, .proc = proc});
}

static inlay_point *code_point(point_kind kind, weave_insn *i) { return point(kind, i->run, i->index, NULL); }

/* "before jz at 0x401234 in main (gzip)" */
static void put_place(char *out, size_t size, const char *word, const weave_insn *i)
{
    const inlay_proc *p = inlay_proc_at(i->in.addr);
    const inlay_image *in = inlay_image_at(i->in.addr);
    snprintf(out, size, "%s %s at 0x%llx%s%.80s%s%.80s%s", word, i->run->isa->mnemonic(i->in.op),
             (unsigned long long)i->in.addr, p ? " in " : "", p ? p->name : "", in ? " (" : "", in ? in->name : "",
             in ? ")" : "");
}

inlay_point *tool_no_point(const weave_insn *i, const char *what)
{
    put_place(tool_here.refusal, sizeof tool_here.refusal, what, i);
    return NULL;
}

/* Where something was looked up, and is not there. */
inlay_point *tool_point_of_nothing(const char *what)
{
    snprintf(tool_here.refusal, sizeof tool_here.refusal, "%s that is NULL: what was looked up is not there", what);
    return NULL;
}

static const char no_insn[] = "a point of an instruction", no_block[] = "a point of a block";

inlay_point *inlay_before(inlay_insn *insn)
{
    return insn ? code_point(POINT_BEFORE, (weave_insn *)insn) : tool_point_of_nothing(no_insn);
}

inlay_point *tool_point_guarded(inlay_insn *insn, inlay_expr condition)
{
    weave_insn *i = (weave_insn *)insn;
    return made((inlay_point){.kind = POINT_BEFORE, .index = i->index, .run = i->run, .guard = condition});
}

inlay_point *inlay_after(inlay_insn *insn)
{
    weave_insn *i = (weave_insn *)insn;
    if (!i) return tool_point_of_nothing(no_insn);
    if (i->in.flow != ISA_FLOW_NEXT) return tool_no_point(i, "there is no point after");
    return code_point(POINT_AFTER, i);
}

inlay_point *inlay_taken_edge(inlay_insn *insn)
{
    weave_insn *i = (weave_insn *)insn;
    if (!i) return tool_point_of_nothing(no_insn);
    if (!inlay_insn_is_branch(insn)) return tool_no_point(i, "there is no taken edge of");
    return code_point(POINT_TAKEN, i);
}

/* Where control falls in as well, no block begins. */
static inlay_point *head_point(weave_block *b)
{
    return point(POINT_HEAD, b->run, (uint32_t)(b - b->run->blocks), NULL);
}

inlay_point *inlay_block_entry(inlay_block *block)
{
    weave_block *b = (weave_block *)block;
    if (!b) return tool_point_of_nothing(no_block);
    return b->fallen_into ? head_point(b) : point(POINT_BEFORE, b->run, b->first, NULL);
}

inlay_point *inlay_block_anywhere(inlay_block *block)
{
    weave_block *b = (weave_block *)block;
    if (!b) return tool_point_of_nothing(no_block);
    if (b->fallen_into) return head_point(b);
    return point(POINT_ANYWHERE, b->run, (uint32_t)(b - b->run->blocks), NULL);
}

static inlay_point *proc_point(point_kind kind, inlay_proc *p)
{
    return p ? point(kind, NULL, 0, p) : tool_point_of_nothing("a point of a procedure");
}

inlay_point *inlay_proc_entry(inlay_proc *p) { return proc_point(POINT_PROC_ENTRY, p); }
inlay_point *inlay_proc_exit(inlay_proc *p) { return proc_point(POINT_PROC_EXIT, p); }
inlay_point *inlay_proc_return(inlay_proc *p) { return proc_point(POINT_PROC_RETURN, p); }

uint32_t tool_point_insn(const inlay_point *p)
{
    return p->kind == POINT_ANYWHERE || p->kind == POINT_HEAD ? p->run->blocks[p->index].first : p->index;
}

static const char *describe(const inlay_point *p, char *out, size_t size)
{
    static const char *const words[] = {"before",          "after",           "on the taken edge of",
                                        "in the block at", "in the block at", "at the entry of",
                                        "at the exit of",  "at the return of"};
    if (!p->run) {
        snprintf(out, size, "%s %.80s (%.80s)", words[p->kind], p->proc->name, p->proc->image->name);
        return out;
    }
    put_place(out, size, words[p->kind], &p->run->insns[tool_point_insn(p)]);
    return out;
}

static uint64_t address_of(const inlay_point *p)
{
    return p->run ? p->run->insns[tool_point_insn(p)].in.addr : p->proc->low;
}

/* The rewriter goes on, to say all that is refused. */
static bool say_refused(uint64_t address, const char *where, const char *why)
{
    if (tool_now->options.mutating && tool_handoff_data.role == TOOL_INSTRUMENTOR)
        return mutator_refuse(INL_ERR_UNSUPPORTED, "cannot insert%s%s: %s", where ? " " : "", where ? where : "", why);
    bool rewriting = tool_handoff_data.role == TOOL_INSTRUMENTOR;
    if (rewriting) rewriter_note_refusal(address, where ? where : "no point", why);
    tool_say_refused(where, why);
    if (tool_now->options.strict && !rewriting) tool_fail(TOOL_EXIT_FAILED, "the program is ended (--strict)");
    return false;
}

static bool refuse(const inlay_point *p, const char *why)
{
    char where[320];
    return say_refused(address_of(p), describe(p, where, sizeof where), why);
}

/* Only when its code was made; the text says where. */
void tool_point_refused(const weave_insn *insn, const char *why)
{
    char where[200];
    const inlay_proc *p = inlay_proc_at(insn->in.addr);
    const inlay_image *in = inlay_image_at(insn->in.addr);
    snprintf(where, sizeof where, "in %.80s (%.80s)", p ? p->name : "code", in ? in->name : "of no file");
    say_refused(insn->in.addr, where, why);
}

/* A node that is as simple as it gets; nearly all insertions are of this form. */
static bool is_plain_count(inlay_expr e) { return e->kind == SNIPPET_COUNT && e->a->kind == SNIPPET_CONST; }

/* An instruction of several blocks, which has one place in the new code: what is inserted at it is that of the
 * block that begins last, in which it is shown too. */
static bool is_shown_again(const inlay_point *p)
{
    bool insn = p->kind == POINT_BEFORE || p->kind == POINT_AFTER || p->kind == POINT_TAKEN;
    return insn && tool_now->block_shown && p->run == tool_now->block_shown->run &&
           tool_insn_is_shared(tool_now->block_shown, p->index);
}

weave_where tool_point_where(const inlay_point *p)
{
    static const weave_where where[] = {WEAVE_BEFORE, WEAVE_AFTER, WEAVE_TAKEN, WEAVE_ANYWHERE, WEAVE_HEAD};
    return where[p->kind];
}

typedef enum manner { LAST, PREDICATED, FIRST } manner;

static bool insert_code(const inlay_point *p, inlay_expr code, manner how, inlay_insertion *to)
{
    const char *why = "out of memory";
    code = typed_executed(code);
    if (is_shown_again(p)) return true;
    if (p->run->view && tool_here.run_arena)
        return refuse(p, "points of code that is not being shown are for procedure and image callbacks");
    if (!is_plain_count(code)) {
        if (!snippet_check(code, &why)) return refuse(p, why);
        code = mutator_keeps_points(p->run) ? mutator_simplify(p, code) : snippet_simplify(p->run->arena, code);
        if (!code) return refuse(p, "out of memory");
    }
    to->node = weave_insert_at(p->run, tool_point_where(p), p->index, code, how == PREDICATED, &why);
    if (!to->node) return refuse(p, why);
    if (how == FIRST) weave_put_first(weave_list_at(p->run, tool_point_where(p), p->index), to->node);
    if (!p->run->view) return true;
    return tool_code_note(&p->run->insns[tool_point_insn(p)]) || refuse(p, "out of memory");
}

/* An expression made while a run was shown dies with it; one for a procedure must not. Procedure and
 * image callbacks build theirs for ever (client.c), so there is nothing to copy. */
static bool insert_proc(const inlay_point *p, inlay_expr code, manner how, inlay_insertion *to)
{
    const char *why;
    if (tool_here.run_arena) return refuse(p, "points of procedures are for procedure and image callbacks");
    code = typed_executed(code);
    if (!snippet_check(code, &why)) return refuse(p, why);
    proc_insert *n = mutator_keeps_points(NULL) ? mutator_proc_insert(p) : tool_alloc(sizeof *n);
    if (!n) return refuse(p, "out of memory");
    proc_insert **end = p->kind == POINT_PROC_ENTRY ? &p->proc->entry : &p->proc->exit;
    while (how != FIRST && *end) end = &(*end)->next;
    *n = (proc_insert){*end, code, how == PREDICATED, p->kind == POINT_PROC_RETURN};
    *end = n;
    to->kept = n;
    p->proc->image->process->proc_points = true;
    return true;
}

/* Nobody asks for the value of the whole. */
static inlay_expr without_extension(inlay_expr code)
{
    while (code && code->kind == SNIPPET_UNARY && code->op == SNIPPET_EXTEND) code = code->a;
    return code;
}

static inlay_insertion *handle_for(inlay_point *p)
{
    bool kept = mutator_keeps_points(p->run);
    if (!p->first.at || (kept && p->first.gone)) return &p->first;
    return kept ? mutator_handle(p) : tool_snippet_alloc(sizeof p->first);
}

/* What is passed to a procedure is where it is passed at its entry alone. */
static const char *misplaced(const inlay_point *p, inlay_expr code)
{
    if (p->kind == POINT_PROC_ENTRY || is_plain_count(code)) return NULL;
    if (!p->run && snippet_has(code, SNIPPET_ARG))
        return "arguments are not where they were passed any more; inlay_scope_at_exit has those of the entry";
    if (!snippet_is_for_entry(code)) return NULL;
    const inlay_proc *of = p->run && p->run->view ? tool_code_proc(p->run)
                           : p->run               ? tool_proc_at(address_of(p))
                                                  : NULL;
    bool is_there = of && of->low == address_of(p) && p->kind != POINT_AFTER && p->kind != POINT_TAKEN;
    return is_there
               ? NULL
               : "a parameter is meant as it is at the procedure's entry; inlay_scope_at and inlay_scope_at_exit have "
                 "it for other places";
}

static inlay_insertion *insert(inlay_point *p, inlay_expr code, manner how)
{
    if (!p) {
        say_refused(0, NULL, tool_here.refusal[0] ? tool_here.refusal : "a point that does not exist");
        tool_here.refusal[0] = '\0';
        return NULL;
    }
    if (!code) {
        char why[sizeof tool_here.mistake];
        refuse(p, tool_mistaken(why, sizeof why));
        return NULL;
    }
    const char *why = misplaced(p, code);
    bool asks = !why && tool_entered_is_in(code);
    if (asks) code = tool_entered_begin(typed_executed(code), &why);
    inlay_insertion *to = why ? NULL : handle_for(p);
    if (!to) {
        refuse(p, why ? why : "out of memory");
        return NULL;
    }
    *to = (inlay_insertion){.at = p};
    code = without_extension(code);
    if (p->guard) code = inlay_if(p->guard, code, NULL);
    bool done = p->run ? insert_code(p, code, how, to) : insert_proc(p, code, how, to);
    if (!done) to->at = NULL;
    if (!done && asks) tool_entered_end(code);
    tool_here.mistake[0] = '\0'; /* of an expression that was not wanted after all */
    return done ? to : NULL;
}

inlay_insertion *inlay_insert(inlay_point *p, inlay_expr code) { return insert(p, code, LAST); }
inlay_insertion *inlay_insert_first(inlay_point *p, inlay_expr code) { return insert(p, code, FIRST); }
inlay_insertion *inlay_insert_predicated(inlay_point *p, inlay_expr code) { return insert(p, code, PREDICATED); }

/* --- procedure points in a run --- */

static bool is_other_entry(const inlay_proc *proc, uint64_t target)
{
    if (target >= proc->low && target < proc->high) return false;
    const inlay_proc *other = tool_proc_at(target);
    return other && other->low == target;
}

/* An indirect jump leaves when its target lies outside the procedure. */
static inlay_expr guarded(const inlay_proc *proc, inlay_expr target, inlay_expr code)
{
    inlay_expr offset = inlay_binary(INLAY_SUB, target, inlay_const(proc->low));
    return inlay_if(inlay_binary(INLAY_UGE, offset, inlay_const(proc->high - proc->low)), code, NULL);
}

/* Not inlay_register: each tool would be linked with reads.c, and so one for which nothing is dead at exits. Where this
 * is woven, the weaver says that it shows a register. */
static inlay_expr value_of(inlay_reg reg)
{
    snippet *s = tool_snippet(SNIPPET_REG);
    if (s) s->reg = (uint8_t)reg;
    return s;
}

static inlay_expr target_of(weave_run *run, const isa_insn *in, cfg_departure to, unsigned reg)
{
    if (in->flow != ISA_FLOW_JUMP) return inlay_branch_target();
    inlay_expr target = to == CFG_TO_REGISTER ? value_of((inlay_reg)reg)
                                              : inlay_load(value_of(inlay_reg_stack_pointer()), 8);
    return code_shows_whole() ? rewriter_original(run->arena, target) : target;
}

static cfg_thunks *thunks(const weave_run *run)
{
    if (!tool_now->thunks) tool_now->thunks = cfg_thunks_new(run->isa);
    return tool_now->thunks;
}

/* Where a jump or a return goes that may be written as the other. */
static cfg_departure departure(const weave_run *run, uint32_t index, inlay_proc *proc, unsigned *reg)
{
    isa_insn in = run->insns[index].in, before = {0};
    const uint64_t bias = proc->image->bias;
    image *im = tool_image_file(proc->image);
    if ((in.flow != ISA_FLOW_RETURN && in.flow != ISA_FLOW_JUMP) || !im || !thunks(run)) return CFG_AS_WRITTEN;
    bool has_before = index && run->insns[index - 1].in.addr + run->insns[index - 1].in.len == in.addr;
    if (has_before) before = run->insns[index - 1].in;
    in.addr -= bias, in.target -= bias, before.addr -= bias;
    return cfg_thunks_departure(tool_now->thunks, im, &in, has_before ? &before : NULL, reg);
}

/* Behind a procedure's last instruction is another, after some padding maybe: hand-written, what is there is the rest
 * of both. */
static bool runs_on(const weave_run *run, const isa_insn *in, inlay_proc *proc)
{
    enum { MOST_PADDING = 64 };
    const uint64_t at = in->addr + in->len, bias = proc->image->bias;
    if (at < proc->high) return false;
    if (is_other_entry(proc, at)) return true;
    const inlay_proc *behind = inlay_proc_next(proc);
    image *im = tool_image_file(proc->image);
    return behind && behind->low > at && behind->low - at < MOST_PADDING && im && thunks(run) &&
           cfg_thunks_fills(thunks(run), im, at - bias, behind->low - bias);
}

/* One of the ways in which control leaves a procedure at an instruction. */
typedef struct way_out {
    point_kind kind;
    enum { ALWAYS, OUTSIDE, NOT_TAKEN } when; /* OUTSIDE: if the jump's target lies there */
    bool returns;
    cfg_departure to;
    unsigned reg;
} way_out;

static inlay_expr conditional(weave_run *run, const isa_insn *in, const inlay_proc *proc, const way_out *way,
                              inlay_expr code)
{
    if (way->when == OUTSIDE) return guarded(proc, target_of(run, in, way->to, way->reg), code);
    if (way->when == NOT_TAKEN) return inlay_if(inlay_unary(INLAY_LNOT, inlay_taken()), code, NULL);
    return code;
}

static void insert_exit(weave_run *run, uint32_t index, inlay_proc *proc, way_out way)
{
    inlay_point p = {.kind = way.kind, .run = run, .index = index, .proc = proc};
    for (proc_insert *n = proc->exit; n; n = n->next) {
        if (n->returns_only && !way.returns) continue;
        inlay_expr code = conditional(run, &run->insns[index].in, proc, &way, n->code);
        if (code) insert_code(&p, code, n->predicated ? PREDICATED : LAST, &p.first);
    }
}

static void apply_exit(weave_run *run, uint32_t index, inlay_proc *proc)
{
    const isa_insn *in = &run->insns[index].in;
    way_out way = {.kind = POINT_BEFORE};
    way.to = departure(run, index, proc, &way.reg);
    if (way.to == CFG_TO_CALLEE) return;
    if (way.to == CFG_TO_REGISTER || way.to == CFG_TO_TOP || in->flow == ISA_FLOW_JUMP_IND) way.when = OUTSIDE;
    way.returns = way.to == CFG_TO_CALLER || (in->flow == ISA_FLOW_RETURN && way.when == ALWAYS);
    switch (in->flow) {
    case ISA_FLOW_RETURN:
    case ISA_FLOW_JUMP_IND: break;
    case ISA_FLOW_NEXT:
        if (!runs_on(run, in, proc)) return;
        way.kind = POINT_AFTER;
        break;
    case ISA_FLOW_JUMP:
        if (!is_other_entry(proc, in->target)) return;
        break;
    case ISA_FLOW_COND:
        if (runs_on(run, in, proc)) insert_exit(run, index, proc, (way_out){POINT_BEFORE, .when = NOT_TAKEN});
        if (!is_other_entry(proc, in->target)) return;
        way.kind = POINT_TAKEN;
        break;
    default: return;
    }
    insert_exit(run, index, proc, way);
}

void tool_points_apply(weave_run *run, uint32_t index, inlay_proc *proc)
{
    if (proc->entry && run->insns[index].in.addr == proc->low) {
        inlay_point p = {.kind = POINT_BEFORE, .run = run, .index = index, .proc = proc};
        for (proc_insert *n = proc->entry; n; n = n->next)
            insert_code(&p, n->code, n->predicated ? PREDICATED : LAST, &p.first);
    }
    if (proc->exit) apply_exit(run, index, proc);
}
