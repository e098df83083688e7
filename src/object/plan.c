/* What is done with an object: which procedures are asked for, and the pieces of code that are displaced for them. */
#include "object/file.h"

#include <stdlib.h>

/* --- parts of procedures --- */

/* NAME.cold, NAME.cold.3: where compilers put what is rarely executed. */
static uint32_t whose_part(const object_file *o, const char *name)
{
    const char *at = name ? strstr(name, ".cold") : NULL;
    char parent[1024];
    if (!at || at == name || (at[5] && at[5] != '.') || (size_t)(at - name) >= sizeof parent) return CFG_NONE;
    memcpy(parent, name, (size_t)(at - name));
    parent[at - name] = 0;
    const image_proc *p = image_proc_named(o->im, parent);
    return p ? cfg_proc_covering(o->cfg, p->addr) : CFG_NONE;
}

static bool find_parts(object_plan *p)
{
    const cfg_program *c = p->o->cfg;
    for (uint32_t i = 0; i < c->proc_count; i++) {
        uint32_t whole = whose_part(p->o, c->procs[i].name);
        p->parent[i] = whole == CFG_NONE ? i : whole;
        if (p->parent[i] != i && !inl_vec_push(&p->parts, i)) return false;
    }
    return true;
}

/* --- procedures --- */

/* Its section, if it is one of this object's that is loaded. */
static const object_section *home_of(const object_plan *p, const cfg_proc *proc)
{
    uint64_t offset;
    uint32_t section = object_section_at(p->o, proc->addr, &offset);
    return section ? &p->o->sections.items[section] : NULL;
}

static bool is_resolver(const object_file *o, const cfg_proc *proc)
{
    for (uint32_t i = 1; i < o->old_symbols; i++) {
        const object_symbol *s = &o->symbols.items[i];
        if (ELF64_ST_TYPE(s->s.st_info) == STT_GNU_IFUNC && s->section &&
            o->sections.items[s->section].at + s->s.st_value == proc->addr)
            return true;
    }
    return false;
}

static const char *fault_of(const object_plan *p, uint32_t number)
{
    const cfg_program *c = p->o->cfg;
    const cfg_proc *proc = &c->procs[number];
    if (proc->status != CFG_PROC_WHOLE) return proc->reason ? proc->reason : "it is not understood";
    if (proc->flags & CFG_PROC_IFUNC || is_resolver(p->o, proc)) return "it runs while the program is being linked";
    if (object_is_thunk(p, proc->addr)) return "it is where jumps or returns of other procedures go through";
    if (object_calls_oddly(p, proc))
        return "what it calls looks at its return address: what stands there may be no code";
    for (size_t i = 0; i < p->parts.count; i++) {
        const cfg_proc *part = &c->procs[p->parts.items[i]];
        if (p->parent[p->parts.items[i]] == number && part->status != CFG_PROC_WHOLE) return part->reason;
    }
    return NULL;
}

static const char not_asked[] = "";

static void choose(object_plan *p, const object_options *options)
{
    const cfg_program *c = p->o->cfg;
    for (uint32_t i = 0; i < c->proc_count; i++) {
        const cfg_proc *proc = &c->procs[i];
        const object_section *home = home_of(p, proc);
        bool asked = proc->name && home && p->parent[i] == i && proc->source == IMAGE_PROC_SYMTAB &&
                     options->wanted(options->arg, proc->name, proc->size);
        asked = asked && (!options->min_path || object_shortest_way(p, i) >= options->min_path);
        p->why[i] = asked ? fault_of(p, i) : not_asked;
        if (!p->why[i]) p->why[i] = object_displace(p, i);
    }
}

bool object_was_asked(const object_plan *p, uint32_t proc) { return p->why[proc] != not_asked; }

/* --- pieces --- */

static bool add_region(object_plan *p, object_region r)
{
    object_region *last = p->regions.count ? &p->regions.items[p->regions.count - 1] : NULL;
    if (last && !r.jumps && last->end == r.from) {
        last->end = r.end;
        return true;
    }
    return inl_vec_push(&p->regions, r);
}

static bool find_regions(object_plan *p)
{
    const cfg_program *c = p->o->cfg;
    for (uint32_t i = 0; i < c->block_count; i++) {
        const cfg_block *b = &c->blocks[i];
        uint64_t begin = p->head[i] ? object_first_movable(p, b) : 0, end = b->addr + b->size;
        if (p->head[i] && (!p->from[i] || p->from[i] > begin) &&
            !add_region(p, (object_region){.from = begin, .end = p->head[i], .jumps = true}))
            return false;
        bool jumps = !(p->covered[i] && p->from[i] == b->addr);
        if (p->from[i] && !add_region(p, (object_region){.from = p->from[i], .end = end, .jumps = jumps})) return false;
    }
    for (size_t i = 0; i < p->regions.count; i++)
        p->regions.items[i].room = object_dead_end(p, p->regions.items[i].end);
    return true;
}

inl_status object_plan_make(object_file *o, const object_options *options, object_plan *p, inl_error *e)
{
    const cfg_program *c = o->cfg;
    size_t blocks = (size_t)c->block_count + 1, procs = (size_t)c->proc_count + 1;
    *p = (object_plan){.o = o, .entries = options->entries};
    p->from = calloc(blocks, sizeof *p->from);
    p->head = calloc(blocks, sizeof *p->head);
    p->covered = calloc(blocks, 1);
    p->why = calloc(procs, sizeof *p->why);
    p->parent = calloc(procs, sizeof *p->parent);
    p->keeps = calloc(procs, 1);
    p->looks = calloc(procs, 1);
    p->thunks = cfg_thunks_new(o->isa->isa);
    if (!p->thunks || !p->from || !p->head || !p->covered || !p->why || !p->parent || !p->keeps || !p->looks ||
        !object_index_edges(p) || !find_parts(p) || !object_find_named(p))
        return object_no_memory(o, e);
    object_find_flags(p);
    object_find_returns(p);
    choose(p, options);
    return find_regions(p) ? INL_OK : object_no_memory(o, e);
}

void object_plan_free(object_plan *p)
{
    cfg_thunks_free(p->thunks);
    free(p->from);
    free(p->head);
    free(p->covered);
    free(p->why);
    free(p->parent);
    free(p->keeps);
    free(p->looks);
    free(p->in);
    free(p->in_at);
    inl_vec_free(&p->aimed);
    inl_vec_free(&p->regions);
    inl_vec_free(&p->undo);
    inl_vec_free(&p->named);
    inl_vec_free(&p->parts);
}
