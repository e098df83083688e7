/* What is inserted, and what of it is in force: a number for each procedure of the analysis, made from all that lies at
 * its points. Where it has changed, the procedure is made anew; 0: nothing lies there. A second number, of what would
 * be woven alone, is the same where the same has been inserted again (mutator_again.c). */
#include "tool/mutator.h"
#include "base/search.h"
#include "tool/code.h"

#include <stdlib.h>
#include <string.h>

typedef struct numbers {
    mutated_image *mi;
    uint64_t *of; /* by procedure */
    bool by_content;
} numbers;

mutated_image *mutator_image(mutatee *m, inlay_image *image)
{
    mutated_image *mi = m->images;
    while (mi && mi->image != image) mi = mi->next;
    tool_code *code = mi || !image ? NULL : code_of(image);
    if (mi || !code || !code->cfg) return mi;
    size_t n = code->cfg->proc_count + 1u;
    mi = calloc(1, sizeof *mi);
    if (!mi) return NULL;
    *mi = (mutated_image){.next = m->images,
                          .image = image,
                          .cfg = code->cfg,
                          .wanted = calloc(n, sizeof *mi->wanted),
                          .now = calloc(n, sizeof *mi->now),
                          .in = calloc(n, sizeof *mi->in),
                          .why = calloc(n, sizeof *mi->why)};
    return m->images = mi;
}

static bool is_whole(const mutated_image *mi) { return mi->wanted && mi->now && mi->in && mi->why; }

static void note(const numbers *n, uint32_t proc, uint64_t what)
{
    if (proc == CFG_NONE) return;
    n->of[proc] += what;
    if (!n->of[proc]) n->of[proc] = 1;
}

static uint32_t proc_of(const mutated_image *mi, uint64_t address)
{
    uint32_t b = cfg_block_covering(mi->cfg, address - mi->image->bias);
    return b == CFG_NONE ? CFG_NONE : mi->cfg->blocks[b].proc;
}

/* Handles of what is inserted are not used twice, nor is their order of no account. */
static uint64_t number_of(const numbers *n, const weave_list *l, uint64_t where)
{
    uint64_t sum = 0, order = where;
    for (const weave_insert *i = l->first; i; i = i->next) {
        uint64_t what = n->by_content ? mutator_content(i->code) * 2 : (uint64_t)(uintptr_t)i->code * 2;
        sum += mutator_mix(order++, what + (uint64_t)i->predicated);
    }
    return sum;
}

static void note_insn(const numbers *n, const weave_insn *i)
{
    const weave_block *b = &i->run->blocks[i->block];
    uint64_t at = i->in.addr * 16, sum = number_of(n, &i->before, at) + number_of(n, &i->after, at << 20);
    sum += number_of(n, &i->taken, at << 24);
    if (i->index == b->first) sum += number_of(n, &b->anywhere, at << 28) + number_of(n, &b->entry, at << 30);
    if (sum) note(n, proc_of(n->mi, i->in.addr), sum);
}

static uint64_t number_of_kept(const numbers *of, const proc_insert *n, uint64_t where)
{
    uint64_t sum = 0;
    for (uint64_t order = where; n; n = n->next) {
        uint64_t content = of->by_content ? mutator_content(n->code) : (uint64_t)(uintptr_t)n->code;
        sum += mutator_mix(order++, content * 4 + n->predicated * 2u + n->returns_only);
    }
    return sum;
}

/* Ways out are wherever its blocks are. */
static void note_proc(const numbers *n, const inlay_proc *p)
{
    const mutated_image *mi = n->mi;
    uint64_t low = p->low - mi->image->bias, high = p->high - mi->image->bias, out = number_of_kept(n, p->exit, 8);
    if (p->entry) note(n, proc_of(mi, p->low), number_of_kept(n, p->entry, 1));
    const cfg_program *cfg = mi->cfg;
    for (uint32_t b = (uint32_t)INL_FIRST(cfg->block_count, k, cfg->blocks[k].addr >= low);
         out && b < cfg->block_count && cfg->blocks[b].addr < high; b++)
        note(n, cfg->blocks[b].proc, mutator_mix(out, b));
}

static void read_image(const numbers *n)
{
    const mutated_image *mi = n->mi;
    const tool_code *c = mi->image->code;
    uint64_t key, value;
    memset(n->of, 0, mi->cfg->proc_count * sizeof *n->of);
    for (size_t at = 0; inl_map_next(&c->inserts, &at, &key, &value);)
        note_insn(n, (const weave_insn *)(uintptr_t)value);
    for (size_t at = 0; inl_map_next(&c->replaced, &at, &key, &value);)
        note(n, proc_of(mi, key), mutator_mix(key, value));
    for (size_t k = 0; mi->image->made && k < mi->image->proc_count; k++) {
        const inlay_proc *p = mi->image->made[k];
        if (p && (p->entry || p->exit)) note_proc(n, p);
    }
}

void mutator_read_contents(mutated_image *mi, uint64_t *contents)
{
    const numbers n = {mi, contents, true};
    read_image(&n);
}

inl_status mutator_read_wanted(mutatee *m, inl_error *e)
{
    for (module *x = module_first(m->modules); x; x = x->next) {
        inlay_image *i = x->user;
        if (!i || !tool_image_has_insertions(i)) continue;
        mutated_image *mi = mutator_image(m, i);
        if (!mi) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s cannot be analysed", i->path);
    }
    for (mutated_image *mi = m->images; mi; mi = mi->next) {
        if (!is_whole(mi)) return inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
        const numbers n = {mi, mi->wanted, false};
        read_image(&n);
    }
    return INL_OK;
}
