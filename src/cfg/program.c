/* The analysis from start to end, and the questions that a finished one answers. */
#include "cfg/program.h"
#include "base/search.h"
#include "cfg/private.h"

#include <string.h>

#include <elf.h>

bool cfg_name_sems(cfg_work *w)
{
    w->sems = calloc(w->isa->op_count + 1, 1);
    if (!w->sems) return false;
    for (unsigned op = 0; op < w->isa->op_count; op++) {
        const char *name = w->isa->mnemonic((uint16_t)op);
        for (unsigned s = 0; s <= SEM_SYSCALL; s++)
            if (cfg_means(w->machine, name, s)) w->sems[op] = (uint8_t)s;
    }
    return true;
}

static void report(const cfg_work *w, const char *stage, uint64_t done, uint64_t of)
{
    if (w->options && w->options->progress) w->options->progress(w->options->arg, stage, done, of);
}

static void explore(cfg_work *w)
{
    do {
        cfg_explore(w);
        cfg_procs_merge(w);
    } while (w->todo.count && !w->failed);
}

/* Follows what is known until nothing new turns up. */
static void settle(cfg_work *w)
{
    do {
        do explore(w);
        while (cfg_resolve(w, false) && !w->failed);
    } while (cfg_resolve(w, true) && !w->failed);
}

enum { max_rounds = 100 };

static void follow_pointers(cfg_work *w)
{
    for (int i = 0; i < max_rounds && !w->failed && cfg_follow_pointers(w); i++) settle(w);
}

static void analyse(cfg_work *w)
{
    report(w, "procedures", 0, 3);
    cfg_procs_seed(w);
    if (w->failed) return;
    cfg_seed_pointers(w);
    cfg_seed_landing_pads(w);
    report(w, "code", 1, 3);
    settle(w);
    follow_pointers(w);
    for (int i = 0; i < max_rounds && !w->failed && cfg_search_gaps(w); i++) {
        settle(w);
        follow_pointers(w);
    }
    for (int i = 0; i < max_rounds && !w->failed && cfg_search_traps(w); i++) {
        settle(w);
        follow_pointers(w);
    }
    report(w, "blocks", 2, 3);
}

static void close_work(cfg_work *w)
{
    free(w->sems);
    free(w->marks);
    inl_vec_free(&w->regions);
    inl_vec_free(&w->procs);
    inl_vec_free(&w->order);
    inl_vec_free(&w->starts);
    inl_vec_free(&w->fresh);
    inl_vec_free(&w->waits);
    inl_vec_free(&w->todo);
    inl_vec_free(&w->events);
    inl_vec_free(&w->trial);
    inl_vec_free(&w->notes);
    inl_vec_free(&w->skips);
    inl_vec_free(&w->overlaps);
    inl_vec_free(&w->pointers);
    inl_vec_free(&w->found);
    inl_vec_free(&w->indirects);
    inl_map_free(&w->by_site);
    inl_vec_free(&w->tables);
    inl_vec_free(&w->table_spans);
    inl_vec_free(&w->table_bases);
    inl_vec_free(&w->data);
    free(w->named);
    free(w->hinted);
    free(w->operands);
    free(w->sites);
}

static inl_status run(cfg_work *w, cfg_program *p, inl_error *e)
{
    const char *path = image_path(w->image);
    w->isa = isa_for_machine(image_machine(w->image));
    w->machine = w->isa ? cfg_machine_for(w->isa) : NULL;
    if (!w->machine)
        return inl_fail(e, INL_ERR_UNSUPPORTED,
                        "%s: code for a processor (ELF machine %u) that Inlay "
                        "does not know",
                        path, image_machine(w->image));
    p->isa = w->isa;
    w->fixed = image_type(w->image) == ET_EXEC;
    w->got = image_got(w->image);
    w->go = image_is_go(w->image);
    inl_error why = {0};
    if (!cfg_text_open(w, &why)) {
        if (e) *e = why;
        return why.code;
    }
    if (!cfg_name_sems(w)) w->failed = true;
    if (!w->failed) analyse(w);
    if (w->failed) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", path);
    return cfg_build(w, p, e);
}

inl_status cfg_program_analyse(image *im, const cfg_options *options, cfg_program **out, inl_error *e)
{
    cfg_work w = {.image = im, .options = options, .current = CFG_NONE};
    cfg_program *p = calloc(1, sizeof *p);
    *out = NULL;
    if (!p || !(p->priv = calloc(1, sizeof(cfg_private)))) {
        free(p);
        return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", image_path(im));
    }
    p->image = im;
    inl_status st = run(&w, p, e);
    close_work(&w);
    if (st) {
        cfg_program_free(p);
        return st;
    }
    report(&w, "done", 3, 3);
    *out = p;
    return INL_OK;
}

void cfg_program_free(cfg_program *p)
{
    if (!p) return;
    cfg_private *v = p->priv;
    free(v->spans);
    free(v->bits);
    free(v->ranks);
    free(v->skips);
    free(v);
    free(p->procs);
    free(p->blocks);
    free(p->edges);
    free(p->tables);
    free(p);
}

static bool skips_prefix(const cfg_private *v, uint64_t addr)
{
    size_t first = INL_FIRST(v->skip_count, k, v->skips[k] >= addr);
    return first < v->skip_count && v->skips[first] == addr;
}

uint32_t cfg_block_at(const cfg_program *p, uint64_t addr)
{
    const cfg_private *v = p->priv;
    for (size_t i = 0; i < v->span_count; i++) {
        const cfg_text_span *s = &v->spans[i];
        if (addr < s->addr || addr >= s->end) continue;
        size_t bit = s->base + (addr - s->addr);
        uint64_t word = v->bits[bit / 64], below = (1ull << bit % 64) - 1;
        if (!(word >> bit % 64 & 1)) return skips_prefix(v, addr) ? cfg_block_at(p, addr - 1) : CFG_NONE;
        return v->ranks[bit / 64] + (uint32_t)__builtin_popcountll(word & below);
    }
    return CFG_NONE;
}

uint32_t cfg_block_covering(const cfg_program *p, uint64_t addr)
{
    uint32_t behind = (uint32_t)INL_FIRST(p->block_count, k, p->blocks[k].addr > addr);
    return behind && addr - p->blocks[behind - 1].addr < p->blocks[behind - 1].size ? behind - 1 : CFG_NONE;
}

static bool only_traps(const cfg_program *p, const isa_insn *in)
{
    const cfg_machine *m = cfg_machine_for(p->isa);
    const char *name = p->isa->mnemonic(in->op);
    if (cfg_means(m, name, SEM_HALT)) return true;
    return in->flow == ISA_FLOW_TRAP && m->sems[SEM_INT3] && strcmp(name, m->sems[SEM_INT3][0]) == 0;
}

cfg_sight cfg_look_at(const cfg_program *p, uint64_t addr, uint64_t *at)
{
    const cfg_machine *m = cfg_machine_for(p->isa);
    for (*at = addr;;) {
        const uint8_t *bytes;
        isa_insn in;
        if (cfg_block_at(p, *at) != CFG_NONE) return CFG_SEES_BLOCK;
        size_t have = image_bytes(p->image, *at, &bytes), skip;
        if (have == 0) return CFG_SEES_UNKNOWN;
        if (p->isa->decode(bytes, have, *at, &in) == ISA_OK && only_traps(p, &in)) return CFG_SEES_TRAP;
        skip = m->padding(p->isa, bytes, have);
        if (skip == 0 || skip > have) return CFG_SEES_UNKNOWN;
        *at += skip;
    }
}

uint32_t cfg_proc_covering(const cfg_program *p, uint64_t addr)
{
    uint32_t behind = (uint32_t)INL_FIRST(p->proc_count, k, p->procs[k].addr > addr);
    return behind && addr - p->procs[behind - 1].addr < p->procs[behind - 1].size ? behind - 1 : CFG_NONE;
}

bool cfg_proc_is_padding(const cfg_program *p, uint32_t proc)
{
    const cfg_machine *m = cfg_machine_for(p->isa);
    const cfg_proc *of = &p->procs[proc];
    const uint8_t *bytes;
    if (of->block_count != 1 || proc + 1 >= p->proc_count || of->addr + of->size != of[1].addr) return false;
    if (image_bytes(p->image, of->addr, &bytes) < of->size) return false;
    for (size_t at = 0, skip; at < of->size; at += skip)
        if (!(skip = m->padding(p->isa, bytes + at, of->size - at))) return false;
    return true;
}

const cfg_table *cfg_table_at(const cfg_program *p, uint64_t jump)
{
    uint32_t first = (uint32_t)INL_FIRST(p->table_count, k, p->tables[k].jump >= jump);
    return first < p->table_count && p->tables[first].jump == jump ? &p->tables[first] : NULL;
}

uint64_t cfg_table_target(const cfg_program *p, const cfg_table *t, uint32_t i)
{
    bool ok;
    uint64_t target = cfg_read_target(p->image, t, i, &ok);
    return ok ? target : 0;
}

bool cfg_text_stretch(const cfg_program *p, size_t i, uint64_t *addr, uint64_t *end)
{
    const cfg_private *priv = p->priv;
    if (i >= priv->span_count) return false;
    *addr = priv->spans[i].addr;
    *end = priv->spans[i].end;
    return true;
}
