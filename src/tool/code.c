/* The static view of an image's code (code.h), on the analysis of the whole image.
 *
 * The image is analysed when somebody first asks, and a procedure's blocks are decoded into a run when its
 * first block is asked for. The run is never woven: handles of blocks and instructions point into it, and
 * what is inserted lies in its lists. When an engine shows its own run of the same code, each instruction
 * gets what was inserted at its address, so that it does not matter how the engine cuts blocks.
 *
 * A procedure here is one of the image's table; its blocks are those that begin from its address on and
 * before the next one's. What is known of blocks and edges is in code_edges.c, what was inserted in code_inserts.c.
 * All under the engine's lock. */
#include "tool/code.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

/* --- analysis --- */

tool_code *code_of(inlay_image *i)
{
    if (i->code || !i->m) return i->code;
    tool_code *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    inl_error e = {0};
    c->image = i;
    if (tool_analyse(i->m->image, NULL, &c->cfg, &e) != INL_OK) {
        tool_say_limited("cannot analyse %s: %s", i->path, e.text);
        c->cfg = NULL;
    }
    c->touched = calloc(c->cfg ? c->cfg->proc_count + 1u : 1u, sizeof *c->touched);
    return i->code = c;
}

cfg_program *tool_code_take(inlay_image *i) { return i->code ? i->code->cfg : NULL; }

static void forget_views(inlay_image *i)
{
    tool_code *c = i->code;
    for (size_t k = 0; c->views && k < i->proc_count; k++) free(c->views[k]);
    inl_map_free(&c->inserts);
    inl_map_free(&c->replaced);
    inl_arena_free(&c->arena);
    free(c->views);
}

void tool_code_forget(inlay_image *i)
{
    tool_code *c = i->code;
    if (!c) return;
    forget_views(i);
    if (c->cfg) cfg_program_free(c->cfg);
    free(c->touched);
    free(c);
    i->code = NULL;
}

bool tool_code_has_any(const inlay_image *i)
{
    const tool_code *c = i->code;
    if (!c) return false;
    for (uint32_t k = 0; c->cfg && c->touched && k < c->cfg->proc_count; k++)
        if (c->touched[k]) return true;
    return c->replaced.count || (c->inserts.count && !c->touched);
}

bool tool_image_has_insertions(const inlay_image *i)
{
    if (i->code && (i->code->inserts.count || i->code->replaced.count)) return true;
    for (size_t k = 0; i->made && k < i->proc_count; k++)
        if (i->made[k] && (i->made[k]->entry || i->made[k]->exit)) return true;
    return false;
}

void tool_code_reset(inlay_image *i)
{
    tool_code *c = i->code;
    if (!c) return;
    forget_views(i);
    if (c->touched) memset(c->touched, 0, (c->cfg ? c->cfg->proc_count + 1u : 1u) * sizeof *c->touched);
    *c = (tool_code){.cfg = c->cfg, .image = i, .touched = c->touched};
}

/* --- a procedure's blocks --- */

/* The first block at or behind an address. */
static uint32_t first_from(const cfg_program *p, uint64_t addr)
{
    return (uint32_t)INL_FIRST(p->block_count, k, p->blocks[k].addr >= addr);
}

static bool decode_block(code_view *v, const cfg_block *b)
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

static bool decode(code_view *v, uint32_t end)
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

static code_view *make_view(tool_code *c, inlay_proc *p)
{
    inlay_proc *next = inlay_proc_next(p);
    uint64_t bias = c->image->bias;
    uint32_t first = first_from(c->cfg, p->low - bias);
    uint32_t end = next ? first_from(c->cfg, next->low - bias) : c->cfg->block_count;
    code_view *v = calloc(1, sizeof *v);
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

static code_view *view_of(inlay_proc *p)
{
    tool_process_mean(p->image->process);
    tool_code *c = code_of(p->image);
    if (!c || !c->cfg) return NULL;
    if (!c->views) c->views = calloc(p->image->proc_count + 1, sizeof *c->views);
    if (!c->views) return NULL;
    if (!c->views[p->index]) c->views[p->index] = make_view(c, p);
    return c->views[p->index];
}

static const weave_block *own(const inlay_block *b) { return (const weave_block *)b; }

/* The analysis's block; NULL for a block of an engine that it does not know, and for none. */
const cfg_block *code_known_block(const inlay_block *block, tool_code **code)
{
    const weave_block *b = own(block);
    *code = NULL;
    if (!b) return NULL;
    if (b->run->view) {
        code_view *v = code_view_behind(b->run);
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

inlay_proc *tool_code_proc(const weave_run *run) { return code_view_behind(run)->proc; }

inlay_block *inlay_proc_block_first(inlay_proc *p)
{
    if (!p) return NULL;
    bool entered = tool_enter();
    code_view *v = view_of(p);
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
    return b && b + 1 < b->run->blocks + b->run->block_count ? (inlay_block *)(b + 1) : NULL;
}

inlay_block *inlay_block_prev(const inlay_block *block)
{
    const weave_block *b = own(block);
    return b && b > b->run->blocks ? (inlay_block *)(b - 1) : NULL;
}

inlay_insn *inlay_insn_prev(const inlay_insn *insn)
{
    const weave_insn *i = (const weave_insn *)insn;
    return i && i->index > i->run->blocks[i->block].first ? (inlay_insn *)(i - 1) : NULL;
}

/* The procedure to which a block is counted: the last one that begins at or before it. */
static inlay_proc *proc_before(inlay_image *i, uint64_t addr)
{
    inlay_proc *p = tool_proc_at(addr);
    if (p) return p;
    if (!inlay_image_proc_first(i)) return NULL;
    size_t low = INL_FIRST(i->proc_count, k, i->procs[k].addr + i->bias > addr);
    return low && i->procs[low - 1].size ? tool_proc_at(i->procs[low - 1].addr + i->bias) : NULL;
}

inlay_block *code_block_by_index(tool_code *c, uint32_t k)
{
    if (k == CFG_NONE) return NULL;
    inlay_proc *p = proc_before(c->image, c->cfg->blocks[k].addr + c->image->bias);
    code_view *v = p ? view_of(p) : NULL;
    if (!v || k < v->first || k - v->first >= v->run.block_count) return NULL;
    return (inlay_block *)&v->run.blocks[k - v->first];
}

inlay_block *inlay_block_covering(uint64_t address)
{
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(address);
    tool_code *c = i ? code_of(i) : NULL;
    inlay_block *b = c && c->cfg ? code_block_by_index(c, cfg_block_covering(c->cfg, address - i->bias)) : NULL;
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
