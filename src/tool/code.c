/* The static view of an image's code (code.h), on the analysis of the whole image.
 *
 * The image is analysed when somebody first asks, and a procedure's blocks are decoded into a run when its
 * first block is asked for. The run is never woven: handles of blocks and instructions point into it, and
 * what is inserted lies in its lists. When an engine shows its own run of the same code, each instruction
 * gets what was inserted at its address, so that it does not matter how the engine cuts blocks.
 *
 * A procedure here is one of the image's table; its blocks are those that begin from its address on and
 * before the next one's. All under the engine's lock. */
#include "tool/rewriter.h"
#include "base/map.h"
#include "cfg/changes.h"

#include <stdlib.h>
#include <string.h>

typedef struct view { /* of a procedure */
    weave_run run;    /* run.view points here */
    struct tool_code *code;
    inlay_proc *proc;
    uint32_t first; /* block, in the analysis */
} view;

typedef struct tool_code {
    cfg_program *cfg; /* NULL: could not be analysed */
    inlay_image *image;
    inl_arena arena;
    view **views;     /* by procedure index */
    inl_map inserts;  /* address -> weave_insn, of instructions with something in their lists */
    inl_map replaced; /* address of a procedure -> its result */
    uint8_t *touched; /* by procedure of the analysis: something was inserted there, or it is replaced */
} tool_code;

/* --- analysis --- */

static tool_code *code_of(inlay_image *i)
{
    if (i->code || !i->m) return i->code;
    tool_code *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    inl_error e = {0};
    c->image = i;
    if (cfg_program_analyse(i->m->image, NULL, &c->cfg, &e) != INL_OK) {
        tool_say_limited("cannot analyse %s: %s", i->path, e.text);
        c->cfg = NULL;
    }
    c->touched = calloc(c->cfg ? c->cfg->proc_count + 1u : 1u, 1);
    return i->code = c;
}

cfg_program *tool_code_take(inlay_image *i) { return i->code ? i->code->cfg : NULL; }

void tool_code_forget(inlay_image *i)
{
    tool_code *c = i->code;
    if (!c) return;
    for (size_t k = 0; c->views && k < i->proc_count; k++) free(c->views[k]);
    if (c->cfg) cfg_program_free(c->cfg);
    inl_map_free(&c->inserts);
    inl_map_free(&c->replaced);
    free(c->touched);
    inl_arena_free(&c->arena);
    free(c->views);
    free(c);
    i->code = NULL;
}

/* --- a procedure's blocks --- */

/* The first block at or behind an address. */
static uint32_t lower_bound(const cfg_program *p, uint64_t addr)
{
    uint32_t low = 0, high = p->block_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (p->blocks[middle].addr < addr) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool decode_block(view *v, const cfg_block *b)
{
    const uint8_t *bytes;
    const cfg_program *p = v->code->cfg;
    size_t avail = image_bytes(p->image, b->addr, &bytes), at = 0;
    weave_run *run = &v->run;
    weave_block *to = &run->blocks[run->block_count];
    *to = (weave_block){.run = run, .first = run->insn_count, .head = true};
    for (uint32_t i = 0; i < b->insn_count && at < avail; i++) {
        weave_insn *insn = &run->insns[run->insn_count];
        isa_result r = p->isa->decode(bytes + at, avail - at, b->addr + at + v->code->image->bias, &insn->in);
        if (r == ISA_TRUNCATED || !insn->in.len) break;
        insn->run = run;
        insn->block = run->block_count;
        insn->index = run->insn_count++;
        at += insn->in.len;
        to->count++;
    }
    run->block_count++;
    return to->count == b->insn_count;
}

static bool decode(view *v, uint32_t end)
{
    const cfg_block *blocks = v->code->cfg->blocks;
    weave_run *run = &v->run;
    uint32_t n = 0;
    for (uint32_t k = v->first; k < end; k++) n += blocks[k].insn_count;
    run->insns = inl_arena_alloc(run->arena, n * sizeof *run->insns);
    run->blocks = inl_arena_alloc(run->arena, (end - v->first) * sizeof *run->blocks);
    if (!run->insns || !run->blocks) return false;
    for (uint32_t k = v->first; k < end; k++)
        if (!decode_block(v, &blocks[k])) return false;
    return true;
}

static view *make_view(tool_code *c, inlay_proc *p)
{
    inlay_proc *next = inlay_proc_next(p);
    uint64_t bias = c->image->bias;
    uint32_t first = lower_bound(c->cfg, p->low - bias);
    uint32_t end = next ? lower_bound(c->cfg, next->low - bias) : c->cfg->block_count;
    view *v = calloc(1, sizeof *v);
    if (!v) return NULL;
    v->run = (weave_run){.isa = c->cfg->isa, .arena = &c->arena, .view = v};
    v->code = c;
    v->proc = p;
    v->first = first;
    if (end > first && !decode(v, end)) {
        tool_say_limited("cannot show the code of %s", p->name);
        v->run.block_count = 0;
    }
    return v;
}

static view *view_of(inlay_proc *p)
{
    tool_code *c = code_of(p->image);
    if (!c || !c->cfg) return NULL;
    if (!c->views) c->views = calloc(p->image->proc_count + 1, sizeof *c->views);
    if (!c->views) return NULL;
    if (!c->views[p->index]) c->views[p->index] = make_view(c, p);
    return c->views[p->index];
}

static view *view_behind(const weave_run *run) { return run->view; }
static const weave_block *own(const inlay_block *b) { return (const weave_block *)b; }

/* The analysis's block; NULL for a block of an engine that it does not know. */
static const cfg_block *known_block(const inlay_block *block, tool_code **code)
{
    const weave_block *b = own(block);
    if (b->run->view) {
        view *v = view_behind(b->run);
        *code = v->code;
        return &v->code->cfg->blocks[v->first + (uint32_t)(b - b->run->blocks)];
    }
    uint64_t at = b->run->insns[b->first].in.addr;
    inlay_image *i = tool_image_at(at);
    *code = i ? code_of(i) : NULL;
    if (!*code || !(*code)->cfg) return NULL;
    uint32_t k = cfg_block_covering((*code)->cfg, at - i->bias);
    return k == CFG_NONE ? NULL : &(*code)->cfg->blocks[k];
}

/* --- walking --- */

inlay_proc *tool_code_proc(const weave_run *run) { return view_behind(run)->proc; }

inlay_block *inlay_proc_block_first(inlay_proc *p)
{
    bool entered = tool_enter();
    view *v = view_of(p);
    tool_leave(entered);
    return v && v->run.block_count ? (inlay_block *)&v->run.blocks[0] : NULL;
}

inlay_block *inlay_proc_block_last(inlay_proc *p)
{
    inlay_block *first = inlay_proc_block_first(p);
    return first ? (inlay_block *)(own(first) + own(first)->run->block_count - 1) : NULL;
}

unsigned inlay_proc_block_count(inlay_proc *p)
{
    inlay_block *first = inlay_proc_block_first(p);
    return first ? own(first)->run->block_count : 0;
}

inlay_block *inlay_block_next(const inlay_block *block)
{
    const weave_block *b = own(block);
    return b + 1 < b->run->blocks + b->run->block_count ? (inlay_block *)(b + 1) : NULL;
}

inlay_block *inlay_block_prev(const inlay_block *block)
{
    const weave_block *b = own(block);
    return b > b->run->blocks ? (inlay_block *)(b - 1) : NULL;
}

inlay_insn *inlay_insn_prev(const inlay_insn *insn)
{
    const weave_insn *i = (const weave_insn *)insn;
    return i->index > i->run->blocks[i->block].first ? (inlay_insn *)(i - 1) : NULL;
}

/* The procedure to which a block is counted: the last one that begins at or before it. */
static inlay_proc *proc_before(inlay_image *i, uint64_t addr)
{
    inlay_proc *p = tool_proc_at(addr);
    if (p) return p;
    if (!inlay_image_proc_first(i)) return NULL;
    size_t low = 0, high = i->proc_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (i->procs[middle].addr + i->bias <= addr) low = middle + 1;
        else high = middle;
    }
    return low && i->procs[low - 1].size ? tool_proc_at(i->procs[low - 1].addr + i->bias) : NULL;
}

static inlay_block *block_by_index(tool_code *c, uint32_t k)
{
    if (k == CFG_NONE) return NULL;
    inlay_proc *p = proc_before(c->image, c->cfg->blocks[k].addr + c->image->bias);
    view *v = p ? view_of(p) : NULL;
    if (!v || k < v->first || k - v->first >= v->run.block_count) return NULL;
    return (inlay_block *)&v->run.blocks[k - v->first];
}

inlay_block *inlay_block_covering(uint64_t address)
{
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    tool_code *c = i ? code_of(i) : NULL;
    inlay_block *b = c && c->cfg ? block_by_index(c, cfg_block_covering(c->cfg, address - i->bias)) : NULL;
    tool_leave(entered);
    return b;
}

inlay_insn *inlay_insn_at(uint64_t address)
{
    inlay_block *b = inlay_block_covering(address);
    inlay_insn *i = b ? inlay_block_first(b) : NULL;
    while (i && inlay_insn_address(i) != address) i = inlay_insn_next(i);
    return i;
}

inlay_block *inlay_block_at(uint64_t address)
{
    inlay_block *b = inlay_block_covering(address);
    return b && inlay_block_address(b) == address ? b : NULL;
}

/* --- what is known --- */

inlay_known inlay_proc_known(inlay_proc *p, const char **why)
{
    static const inlay_known known[] = {[CFG_PROC_WHOLE] = INLAY_WHOLE, [CFG_PROC_PARTLY] = INLAY_PARTLY};
    bool entered = tool_enter();
    tool_code *c = code_of(p->image);
    uint32_t k = c && c->cfg ? cfg_proc_covering(c->cfg, p->low - p->image->bias) : CFG_NONE;
    tool_leave(entered);
    bool stub = k != CFG_NONE && c->cfg->procs[k].flags & CFG_PROC_PLT;
    const char *reason = k == CFG_NONE ? "no code is known there" : stub ? "import stub" : c->cfg->procs[k].reason;
    if (why) *why = reason;
    return k == CFG_NONE || stub ? INLAY_LEFT : known[c->cfg->procs[k].status];
}

bool inlay_proc_address_taken(inlay_proc *p)
{
    bool entered = tool_enter();
    tool_code *c = code_of(p->image);
    uint32_t k = c && c->cfg ? cfg_proc_covering(c->cfg, p->low - p->image->bias) : CFG_NONE;
    tool_leave(entered);
    return k != CFG_NONE && c->cfg->procs[k].flags & CFG_PROC_ADDRESS_TAKEN;
}

/* Does a branch lead to block k? Within the procedure: blocks of one are contiguous. */
static bool is_branched_to(const cfg_program *p, const cfg_block *b)
{
    uint32_t k = (uint32_t)(b - p->blocks);
    const cfg_proc *of = &p->procs[b->proc];
    const cfg_block *first = &p->blocks[of->first_block], *end = first + of->block_count;
    if (b->flags & (CFG_BLOCK_TABLE | CFG_BLOCK_OUTSIDE)) return true;
    for (uint32_t e = first->first_edge; e < end[-1].first_edge + end[-1].edge_count; e++) {
        unsigned kind = p->edges[e].kind;
        if (p->edges[e].to == k && (kind == CFG_EDGE_TAKEN || kind == CFG_EDGE_JUMP || kind == CFG_EDGE_TAIL))
            return true;
    }
    return false;
}

unsigned inlay_block_flags(const inlay_block *block)
{
    static const struct {
        uint32_t from, to;
    } flags[] = {
        {CFG_BLOCK_ENTRY, INLAY_BLOCK_ENTRY},
        {CFG_BLOCK_LANDING, INLAY_BLOCK_LANDING},
        {CFG_BLOCK_ADDRESS_TAKEN, INLAY_BLOCK_ADDRESS_TAKEN},
        {CFG_BLOCK_OUTSIDE, INLAY_BLOCK_OUTSIDE},
        {CFG_BLOCK_LOOP_HEAD, INLAY_BLOCK_LOOP_HEAD},
        {CFG_BLOCK_CALL, INLAY_BLOCK_CALL},
        {CFG_BLOCK_NO_RETURN, INLAY_BLOCK_NO_RETURN},
        {CFG_BLOCK_RETURN, INLAY_BLOCK_RETURN},
        {CFG_BLOCK_UNRESOLVED, INLAY_BLOCK_UNRESOLVED},
    };
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = known_block(block, &c);
    unsigned out = 0;
    for (size_t i = 0; b && i < sizeof flags / sizeof *flags; i++)
        if (b->flags & flags[i].from) out |= flags[i].to;
    if (b && is_branched_to(c->cfg, b)) out |= INLAY_BLOCK_TARGET;
    tool_leave(entered);
    return out;
}

unsigned inlay_block_id(const inlay_block *block)
{
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = known_block(block, &c);
    unsigned id = b ? (unsigned)(b - c->cfg->blocks) : 0;
    tool_leave(entered);
    return id;
}

unsigned inlay_block_successor_count(const inlay_block *block)
{
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = known_block(block, &c);
    tool_leave(entered);
    return b ? b->edge_count : 0;
}

_Static_assert((int)INLAY_EDGE_TAKEN == (int)CFG_EDGE_TAKEN && (int)INLAY_EDGE_TABLE == (int)CFG_EDGE_TABLE &&
                   (int)INLAY_EDGE_TAIL == (int)CFG_EDGE_TAIL,
               "edges are numbered alike");

inlay_edge inlay_block_successor(const inlay_block *block, unsigned k)
{
    inlay_edge out = {0};
    bool entered = tool_enter();
    tool_code *c;
    const cfg_block *b = known_block(block, &c);
    if (b && k < b->edge_count) {
        const cfg_edge *e = &c->cfg->edges[b->first_edge + k];
        out = (inlay_edge){.kind = (inlay_edge_kind)e->kind,
                           .target = e->target + c->image->bias,
                           .to = block_by_index(c, e->to),
                           .back = e->back};
    }
    tool_leave(entered);
    return out;
}

inlay_address inlay_insn_address_of(const inlay_insn *insn, unsigned k)
{
    const weave_insn *i = (const weave_insn *)insn;
    isa_mem mem[ISA_MAX_MEM];
    inlay_address a = {.base = -1, .index = -1};
    int n = i->run->isa->memory(&i->in, mem);
    if ((int)k >= n) return a;
    const isa_mem *m = &mem[k];
    if (m->base < INLAY_REG_COUNT) a.base = m->base;
    if (m->index < INLAY_REG_COUNT && !(m->bits & ISA_MEM_VECTOR_INDEX)) a.index = m->index;
    a.scale = m->scale;
    a.displacement = m->disp;
    a.pc_relative = m->bits & ISA_MEM_PCREL;
    return a;
}

/* --- what was inserted --- */

static void touch(tool_code *c, uint64_t address)
{
    uint32_t b = c->cfg ? cfg_block_covering(c->cfg, address - c->image->bias) : CFG_NONE;
    if (b != CFG_NONE && c->touched) c->touched[c->cfg->blocks[b].proc] = 1;
}

bool tool_code_touched(const inlay_image *i, uint32_t proc)
{
    return i->code && (!i->code->touched || i->code->touched[proc]);
}

/* Called behind an insertion at a point of a static view. */
bool tool_code_note(weave_insn *insn)
{
    tool_code *c = view_behind(insn->run)->code;
    tool_now->process.code_inserted = true;
    touch(c, insn->in.addr);
    return inl_map_put(&c->inserts, insn->in.addr, (uint64_t)(uintptr_t)insn);
}

enum { AT_CALL = 1 }; /* in the values of `replaced`: the key is a call or jump to the procedure */

static bool replace_at(tool_code *c, uint64_t at, const snippet *code, unsigned bits)
{
    touch(c, at);
    return inl_map_put(&c->replaced, at, (uint64_t)(uintptr_t)code | bits);
}

/* The image's direct calls of and jumps to a procedure whose code is not its own (an import stub). */
static bool replace_calls(tool_code *c, inlay_proc *of, const snippet *code)
{
    for (inlay_proc *p = inlay_image_proc_first(c->image); p; p = inlay_proc_next(p))
        for (inlay_block *b = inlay_proc_block_first(p); b; b = inlay_block_next(b)) {
            const weave_insn *i = (const weave_insn *)inlay_block_last(b);
            if (i->in.target != of->low || (i->in.flow != ISA_FLOW_CALL && i->in.flow != ISA_FLOW_JUMP)) continue;
            if (!replace_at(c, i->in.addr, code, AT_CALL)) return false;
        }
    return true;
}

bool inlay_proc_replace(inlay_proc *p, inlay_expr result)
{
    const char *why = "an empty snippet (a wrong argument, or memory is used up)";
    bool entered = tool_enter(), good = false;
    tool_code *c = code_of(p->image);
    if (tool_here.run_arena) {
        why = "this is for procedure and image callbacks";
    } else if (!c) {
        why = "out of memory";
    } else if (result && snippet_check(result, &why)) {
        const snippet *code = inlay_set_register(INLAY_RAX, result);
        good = inlay_proc_known(p, &why) == INLAY_WHOLE ? replace_at(c, p->low, code, 0) : replace_calls(c, p, code);
    }
    if (good) tool_now->process.code_inserted = true;
    else tool_say_limited("cannot replace %s: %s", p->name, why);
    tool_leave(entered);
    return good;
}

static void append(weave_run *run, weave_insn *to, weave_where where, const weave_list *from)
{
    const char *why;
    for (const weave_insert *i = from->first; i; i = i->next)
        if (!weave_insert_at(run, where, to->index, i->code, i->predicated, &why))
            tool_say_limited("cannot insert at 0x%llx: %s", (unsigned long long)to->in.addr, why);
}

static void note_fault(const isa_insn *in, const char *why)
{
    tool_say_limited("cannot replace what is at 0x%llx: %s", (unsigned long long)in->addr, why);
}

/* What a run's instruction does is done by a snippet; the instruction becomes another. */
static void become(weave_run *run, weave_insn *i, const snippet *code, const uint8_t *bytes, size_t size)
{
    isa_insn in;
    const char *why;
    run->isa->decode(bytes, size, i->in.addr, &in);
    i->in = in;
    i->elided = 0;
    if (!weave_insert_at(run, WEAVE_BEFORE, i->index, code, false, &why)) note_fault(&in, why);
}

static const uint8_t ret[] = {0xc3};

/* --- a procedure that is replaced: its first instruction becomes a return, the last thing of its block
 * and, where the engine looks no further than the run (JIT), of the run. The blocks of a whole procedure
 * (rewriting) stay, unreached. */
static const snippet *replacement_at(inlay_image **image, uint64_t at, unsigned kind)
{
    uint64_t found;
    if (!*image || at < (*image)->low || at >= (*image)->high) *image = tool_image_at(at);
    tool_code *c = *image ? (*image)->code : NULL;
    if (!c || !c->replaced.count || !inl_map_get(&c->replaced, at, &found)) return NULL;
    return (found & AT_CALL) == kind ? (const snippet *)(uintptr_t)(found & ~(uint64_t)AT_CALL) : NULL;
}

const snippet *tool_code_cut(weave_run *run, tool_cut *cut)
{
    const snippet *found = NULL;
    uint32_t k = 0;
    inlay_image *image = NULL;
    while (k < run->insn_count && !(found = replacement_at(&image, run->insns[k].in.addr, 0))) k++;
    if (!found) return NULL;
    weave_block *b = &run->blocks[run->insns[k].block];
    bool whole = tool_handoff_data.role == TOOL_INSTRUMENTOR;
    cut->index = k;
    cut->insn_count = whole ? run->insn_count : k + 1;
    cut->block_count = whole ? run->block_count : run->insns[k].block + 1;
    b->count = k - b->first;
    run->insn_count = whole ? 0 : k;
    run->block_count = whole ? 0 : run->insns[k].block + (b->count > 0);
    return found;
}

/* By the procedure that is replaced, so that its callers do not count on these; but on the result. */
static uint16_t changed_at(uint64_t addr)
{
    const inlay_image *image = tool_image_at(addr);
    const cfg_program *p = image->code->cfg;
    uint32_t b = cfg_block_at(p, addr - image->bias);
    uint64_t changed = b == CFG_NONE ? 0 : cfg_proc_changes(p, p->blocks[b].proc);
    return (uint16_t)(changed & ~(1ull << INLAY_RAX));
}

void tool_code_replace(weave_run *run, const tool_cut *cut, const snippet *code)
{
    weave_insn *i = &run->insns[cut->index];
    run->insn_count = cut->insn_count;
    run->block_count = cut->block_count;
    run->blocks[i->block].count = cut->index - run->blocks[i->block].first + 1;
    i->unwanted = changed_at(i->in.addr);
    become(run, i, code, ret, sizeof ret);
}

/* --- calls of a procedure that is replaced where it is called: a call goes on behind itself, a jump has
 * been the last thing before the return. */
static void replace_call(weave_run *run, weave_insn *i, const snippet *code)
{
    static const uint8_t nop5[] = {0x0f, 0x1f, 0x44, 0, 0}, nop6[] = {0x66, 0x0f, 0x1f, 0x44, 0, 0};
    weave_list taken = i->taken;
    i->taken = (weave_list){0};
    append(run, i, WEAVE_BEFORE, &taken);
    if (i->in.flow == ISA_FLOW_JUMP) become(run, i, code, ret, sizeof ret);
    else if (i->in.len == sizeof nop5) become(run, i, code, nop5, sizeof nop5);
    else if (i->in.len == sizeof nop6) become(run, i, code, nop6, sizeof nop6);
    else note_fault(&i->in, "a call of unusual length");
}

void tool_code_replace_calls(weave_run *run)
{
    inlay_image *image = NULL;
    for (uint32_t k = 0; k < run->insn_count; k++) {
        weave_insn *i = &run->insns[k];
        if (i->in.flow != ISA_FLOW_CALL && i->in.flow != ISA_FLOW_JUMP) continue;
        const snippet *code = replacement_at(&image, i->in.addr, AT_CALL);
        if (!code) continue;
        bool ends = i->in.flow == ISA_FLOW_JUMP;
        replace_call(run, i, code);
        if (!ends || tool_handoff_data.role == TOOL_INSTRUMENTOR) continue;
        run->insn_count = k + 1; /* the JIT may have followed the jump */
        run->block_count = i->block + 1;
    }
}

static void visit_insn(weave_insn *i, const tool_code_visitor *v)
{
    weave_block *b = &i->run->blocks[i->block];
    if (i->index == b->first) v->list(v->arg, i->run, &b->anywhere);
    v->list(v->arg, i->run, &i->before);
    v->list(v->arg, i->run, &i->after);
    v->list(v->arg, i->run, &i->taken);
}

void tool_code_visit(inlay_image *image, const tool_code_visitor *v)
{
    size_t at = 0;
    uint64_t key, value;
    const tool_code *c = image->code;
    if (!c) return;
    while (inl_map_next(&c->inserts, &at, &key, &value)) visit_insn((weave_insn *)(uintptr_t)value, v);
    at = 0;
    while (v->replaced && inl_map_next(&c->replaced, &at, &key, &value))
        v->replaced(v->arg, (const snippet *)(uintptr_t)(value & ~(uint64_t)AT_CALL));
}

void tool_code_apply(weave_run *run)
{
    inlay_image *image = NULL;
    for (uint32_t k = 0; k < run->insn_count; k++) {
        weave_insn *insn = &run->insns[k];
        uint64_t at = insn->in.addr, found;
        if (!image || at < image->low || at >= image->high) image = tool_image_at(at);
        tool_code *c = image ? image->code : NULL;
        if (!c || !c->inserts.count || !inl_map_get(&c->inserts, at, &found)) continue;
        const weave_insn *from = (const weave_insn *)(uintptr_t)found;
        const weave_block *b = &from->run->blocks[from->block];
        if (from->index == b->first) append(run, insn, WEAVE_BEFORE, &b->anywhere);
        append(run, insn, WEAVE_BEFORE, &from->before);
        append(run, insn, WEAVE_AFTER, &from->after);
        append(run, insn, WEAVE_TAKEN, &from->taken);
    }
}
