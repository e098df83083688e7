/* Addresses of running code, as snippets see them.
 *
 * In a rewritten program an indirect branch goes to the moved code or to the original, and a return
 * address is one of moved code, all of them at the address where the image happens to lie. A tool is
 * to see what it would see under any other engine: the original's address, as the instrumentor knows
 * it. So each such node is replaced by a call of moved_original on it.
 *
 * And a jump table may have a copy for the moved code: an instruction that reads its entry by an index register would
 * show the copy's address and content. There the node is replaced by the original table's address (where the image lies
 * is known when the program runs: inlay_image.shift) plus the index.
 *
 * Where a table's entry is read cannot be set there: what the copy's entries mean is counted from the copy. It stays,
 * and that is said.
 *
 * Nodes are immutable and may be shared: what is on the way to a replaced one is copied. */
#include "tool/rewriter.h"
#include "base/search.h"
#include "moved/moved.h"

typedef struct wrapper {
    inl_arena *arena;
    const inlay_image *image;
    const weave_insn *at;   /* NULL: anywhere in a block */
    const cfg_table *table; /* that it reads, or NULL */
    isa_mem entry;          /* ... by this operand */
    unsigned operand;
    bool index_gone; /* behind the instruction, which has overwritten the operand's index */
} wrapper;

static bool sees_code_address(const wrapper *w, const snippet *s)
{
    if (s->kind == SNIPPET_RETADDR) return true;
    if (s->kind != SNIPPET_TARGET || !w->at) return false;
    return w->at->in.flow == ISA_FLOW_JUMP_IND || w->at->in.flow == ISA_FLOW_CALL_IND ||
           w->at->in.flow == ISA_FLOW_RETURN;
}

static bool sees_table(const wrapper *w, const snippet *s)
{
    return w->table && (s->kind == SNIPPET_EA || s->kind == SNIPPET_MEM_VALUE) && s->index == w->operand;
}

static snippet *constant(inl_arena *a, uint64_t value)
{
    snippet *s = snippet_new(a, SNIPPET_CONST);
    if (s) s->value = value;
    return s;
}

static snippet *binary(inl_arena *a, snippet_op op, const snippet *x, const snippet *y)
{
    snippet *s = x && y ? snippet_new(a, SNIPPET_BINARY) : NULL;
    if (!s) return NULL;
    s->op = (uint8_t)op;
    s->a = x;
    s->b = y;
    return s;
}

static snippet *load(inl_arena *a, const snippet *address, unsigned size)
{
    snippet *s = address ? snippet_new(a, SNIPPET_LOAD) : NULL;
    if (!s) return NULL;
    s->a = address;
    s->size = (uint8_t)size;
    return s;
}

static const snippet *register_of(inl_arena *a, unsigned reg)
{
    snippet *s = snippet_new(a, SNIPPET_REG);
    if (s) s->reg = (uint8_t)reg;
    return s;
}

/* How far into the table the entry is. The weaver keeps an operand's address from before its instruction, no register's
 * value: where the index is gone, the base is still there. */
static const snippet *offset_in_table(const wrapper *w)
{
    inl_arena *a = w->arena;
    if (!w->index_gone) return binary(a, SNIPPET_MUL, register_of(a, w->entry.index), constant(a, w->entry.scale));
    snippet *address = snippet_new(a, SNIPPET_EA);
    if (address) address->index = w->operand;
    return binary(a, SNIPPET_SUB, address, register_of(a, w->entry.base));
}

static const snippet *in_original_table(const wrapper *w, const snippet *s)
{
    inl_arena *a = w->arena;
    const snippet *place = binary(a, SNIPPET_ADD, load(a, constant(a, (uint64_t)(uintptr_t)&w->image->shift), 8),
                                  constant(a, w->table->table + w->image->bias));
    place = binary(a, SNIPPET_ADD, place, offset_in_table(w));
    return s->kind == SNIPPET_EA ? place : load(a, place, w->entry.size);
}

const snippet *rewriter_original(inl_arena *a, const snippet *s)
{
    snippet *call = snippet_new(a, SNIPPET_CALL);
    const snippet **args = inl_arena_alloc(a, sizeof *args);
    if (!call || !args) return NULL;
    args[0] = s;
    call->fn = (void (*)(void))moved_original;
    call->args = args;
    call->nargs = 1;
    return call;
}

static const snippet *wrap(const wrapper *w, const snippet *s);

/* A copy with its kids wrapped, or the node itself when none changed. NULL: out of memory. */
static const snippet *wrap_kids(const wrapper *w, const snippet *s)
{
    inl_arena *a = w->arena;
    snippet copy = *s;
    const snippet **kids[] = {&copy.a, &copy.b, &copy.c};
    bool changed = false;
    for (int i = 0; i < 3; i++) {
        if (!*kids[i]) continue;
        const snippet *k = wrap(w, *kids[i]);
        if (!k) return NULL;
        changed |= k != *kids[i];
        *kids[i] = k;
    }
    const snippet **args = NULL;
    for (unsigned i = 0; i < s->nargs; i++) {
        const snippet *k = wrap(w, s->args[i]);
        if (!k) return NULL;
        if (k == s->args[i]) continue;
        if (!args) {
            args = inl_arena_alloc(a, s->nargs * sizeof *args);
            if (!args) return NULL;
            for (unsigned n = 0; n < s->nargs; n++) args[n] = s->args[n];
        }
        args[i] = k;
    }
    if (args) copy.args = args;
    if (!changed && !args) return s;
    snippet *fresh = snippet_new(a, s->kind);
    if (fresh) *fresh = copy;
    return fresh;
}

/* What it would have been is still computed: it may do something. */
static const snippet *without_setting(const wrapper *w, const snippet *s)
{
    char where[64];
    snprintf(where, sizeof where, "at %#lx", (long)w->at->in.addr);
    tool_say_refused(where,
                     "an entry of a jump table is read there, of which moved code has a copy: the operand's address "
                     "is not set");
    snippet *sequence = snippet_new(w->arena, SNIPPET_SEQ);
    if (!sequence) return NULL;
    sequence->a = wrap(w, s->a);
    sequence->b = constant(w->arena, 0);
    return sequence->a && sequence->b ? sequence : NULL;
}

static const snippet *wrap(const wrapper *w, const snippet *s)
{
    if (sees_code_address(w, s)) return rewriter_original(w->arena, s);
    if (w->table && s->kind == SNIPPET_SET_EA && s->index == w->operand) return without_setting(w, s);
    return sees_table(w, s) ? in_original_table(w, s) : wrap_kids(w, s);
}

static bool concerns(const wrapper *w, const snippet *s)
{
    if (s->kind == SNIPPET_COUNT && s->a->kind == SNIPPET_CONST) return false;
    return snippet_has(s, SNIPPET_TARGET) || snippet_has(s, SNIPPET_RETADDR) ||
           (w->table &&
            (snippet_has(s, SNIPPET_EA) || snippet_has(s, SNIPPET_MEM_VALUE) || snippet_has(s, SNIPPET_SET_EA)));
}

static bool wrap_list(const wrapper *w, weave_list *l)
{
    for (weave_insert *n = l->first; n; n = n->next)
        if (concerns(w, n->code) && !(n->code = wrap(w, n->code))) return false;
    return true;
}

/* The table whose entry the instruction reads. Such a load mostly stands in the block of its jump, but the jump may lie
 * anywhere in the procedure. */
static const cfg_table *table_read_at(const cfg_program *p, uint32_t proc, uint64_t addr)
{
    const cfg_proc *of = &p->procs[proc];
    const cfg_block *first = &p->blocks[of->first_block], *last = first + of->block_count - 1;
    size_t k = INL_FIRST(p->table_count, t, p->tables[t].jump >= first->addr);
    for (; k < p->table_count && p->tables[k].jump < last->addr + last->size; k++)
        if (p->tables[k].read_at == addr) return &p->tables[k];
    return NULL;
}

/* Does the instruction read an entry of a table by an index, from the table's address on? That is in a register, or
 * in the instruction itself. */
static void find_entry(wrapper *w, const weave_run *run, const cfg_program *p, uint32_t proc)
{
    isa_mem m[ISA_MAX_MEM];
    int n = run->isa->memory(&w->at->in, m);
    w->table = NULL;
    for (int k = 0; k < n && !w->table; k++) {
        if (!(m[k].access & ISA_READ) || m[k].index == ISA_NO_REG || m[k].size != m[k].scale) continue;
        if (m[k].segment || m[k].base == run->isa->stack_reg) continue;
        const cfg_table *t = table_read_at(p, proc, w->at->in.addr - w->image->bias);
        uint64_t disp = t && m[k].base == ISA_NO_REG ? t->table + w->image->bias : 0;
        if (!t || t->entry_size != m[k].size || (uint64_t)m[k].disp != disp) continue;
        w->table = t;
        w->entry = m[k];
        w->operand = (unsigned)k;
    }
}

static bool wrap_behind(wrapper *w, weave_list *l, const isa *set)
{
    isa_effects fx;
    set->effects(&w->at->in, &fx);
    w->index_gone = w->table && fx.writes >> w->entry.index & 1;
    bool good = wrap_list(w, l);
    w->index_gone = false;
    return good;
}

bool rewriter_wrap(weave_run *run, const cfg_program *p, uint32_t proc, const inlay_image *image)
{
    bool good = true;
    wrapper w = {.arena = run->arena, .image = image};
    for (uint32_t k = 0; k < run->block_count && good; k++) {
        const weave_block *b = &run->blocks[k];
        for (uint32_t i = b->first; i < b->first + b->count && good; i++) {
            weave_insn *in = &run->insns[i];
            if (!in->before.first && !in->after.first && !in->taken.first) continue;
            w.at = in;
            find_entry(&w, run, p, proc);
            good = wrap_list(&w, &in->before) && wrap_behind(&w, &in->after, run->isa) && wrap_list(&w, &in->taken);
        }
        w.at = NULL;
        w.table = NULL;
        good = good && wrap_list(&w, &run->blocks[k].anywhere);
        w.at = &run->insns[b->first];
        good = good && wrap_list(&w, &run->blocks[k].entry);
    }
    return good;
}
