/* The plan, read back: new code is decoded again, and what it leads to must be an instruction of the map
 * or an address outside; tables likewise; patches stand in order over the code of moved procedures. */
#include "move/isa.h"
#include "base/search.h"

#include <string.h>

typedef struct checker {
    const move_work *w;
    const move_plan *plan;
    uint8_t *starts; /* bit map: offsets where an instruction or its snippets begin */
    inl_error *error;
} checker;

static bool is_start(const checker *c, uint64_t off)
{
    return off < c->plan->text_size && c->starts[off >> 3] >> (off & 7) & 1;
}

static void add_start(checker *c, uint32_t off) { c->starts[off >> 3] |= (uint8_t)(1 << (off & 7)); }

static inl_status wrong(const checker *c, uint64_t at, const char *what)
{
    return inl_fail_at(c->error, INL_ERR_FORMAT, at, "new code at %#llx: %s", (unsigned long long)at, what);
}

/* A block that is a call, which is made there: nothing was written over it. */
static bool is_call_in_place(const checker *c, uint32_t block)
{
    const move_plan *p = c->plan;
    const cfg_block *b = &p->cfg->blocks[block];
    isa_insn call;
    bool stays = p->procs[b->proc].calls_stay && b->flags & CFG_BLOCK_CALL && move_last_insn(p->cfg, b, &call) &&
                 call.len == b->size;
    uint64_t low = b->addr + p->bias, high = low + b->size;
    size_t i = INL_FIRST(p->patch_count, k, p->patches[k].at.at + p->patches[k].size > low);
    return stays && (i == p->patch_count || p->patches[i].at.at >= high);
}

static const char *target_fault(const checker *c, uint64_t target)
{
    const move_plan *p = c->plan;
    if (target - p->text_addr < p->text_size)
        return is_start(c, target - p->text_addr) ? NULL : "leads into the middle of an instruction";
    uint32_t block = cfg_block_at(p->cfg, target - p->bias);
    if (block != CFG_NONE && p->procs[p->cfg->blocks[block].proc].new_addr && !is_call_in_place(c, block))
        return "leads to old code that has moved";
    return NULL;
}

/* Every instruction of the new code, snippets' own included, is a start for its neighbours. */
static inl_status decode_proc(checker *c, uint32_t proc, bool look)
{
    const move_plan *p = c->plan;
    const move_proc *of = &p->procs[proc];
    uint32_t at = (uint32_t)(of->new_addr - p->text_addr), end = at + of->new_size;
    while (at < end) {
        isa_insn in;
        isa_result r = p->cfg->isa->decode(p->text + at, end - at, p->text_addr + at, &in);
        if (r == ISA_TRUNCATED) return wrong(c, p->text_addr + at, "does not decode");
        if (!look) add_start(c, at);
        bool direct = in.flow == ISA_FLOW_JUMP || in.flow == ISA_FLOW_COND || in.flow == ISA_FLOW_COND_REG ||
                      in.flow == ISA_FLOW_CALL || in.flow == ISA_FLOW_TX;
        const char *why = look && direct ? target_fault(c, in.target) : NULL;
        if (why) return wrong(c, p->text_addr + at, why);
        at += in.len;
    }
    return INL_OK;
}

static inl_status check_map(const checker *c)
{
    const move_plan *p = c->plan;
    move_map_walk walk = move_map_from(p, 0);
    move_map before = {0};
    for (move_map m; move_map_next(&walk, &m); before = m) {
        if (!is_start(c, m.new_off) || !is_start(c, m.code_off))
            return wrong(c, p->text_addr + m.new_off, "the map names no instruction");
        if (m.new_off < before.new_off || m.old_addr <= before.old_addr)
            return wrong(c, p->text_addr + m.new_off, "the map does not ascend");
    }
    return INL_OK;
}

static inl_status check_tables(const checker *c)
{
    const move_plan *p = c->plan;
    for (size_t i = 0; i < c->w->copies.count; i++) {
        const move_reaim *r = &c->w->copies.items[i];
        const cfg_table *t = &p->cfg->tables[r->table];
        for (uint32_t k = 0; k < t->count; k++) {
            const uint8_t *at = p->text + (r->now - p->text_addr) + (size_t)k * t->entry_size;
            uint64_t target = 0;
            int32_t relative;
            memcpy(&relative, at, 4);
            if (t->kind == CFG_TABLE_RELATIVE) target = r->now + (uint64_t)(int64_t)relative;
            else memcpy(&target, at, 8);
            const char *why = target_fault(c, target);
            if (why) return wrong(c, r->now, why);
        }
    }
    return INL_OK;
}

/* In moved code, or in the padding behind it. */
static bool may_be_patched(const move_plan *p, uint64_t at)
{
    uint32_t b = cfg_block_covering(p->cfg, at - p->bias);
    if (b != CFG_NONE) return p->procs[p->cfg->blocks[b].proc].new_addr != 0;
    uint32_t behind = (uint32_t)INL_FIRST(p->cfg->proc_count, k, p->cfg->procs[k].addr > at - p->bias);
    if (!behind) return false;
    const cfg_proc *of = &p->cfg->procs[behind - 1];
    uint64_t end = of->addr + of->size;
    return p->procs[behind - 1].new_addr && at - p->bias >= end && at - p->bias < end + of->padding;
}

static inl_status check_patches(const checker *c)
{
    const move_plan *p = c->plan;
    for (size_t i = 0; i < p->patch_count; i++) {
        const move_patch *x = &p->patches[i];
        if (i && x[-1].at.at + x[-1].size > x->at.at) return wrong(c, x->at.at, "patches overlap");
        for (unsigned k = 0; k < x->size; k++)
            if (!may_be_patched(p, x->at.at + k)) return wrong(c, x->at.at, "a patch over code that stays");
        isa_insn in;
        if (p->cfg->isa->decode(x->now, x->size, x->at.at, &in) != ISA_OK || in.len != x->size)
            return wrong(c, x->at.at, "a patch is no jump");
        if (x->size == c->w->isa->far_jump && !is_start(c, in.target - p->text_addr))
            return wrong(c, x->at.at, "a patch leads into the middle of an instruction");
    }
    return INL_OK;
}

inl_status move_plan_check(const move_plan *plan, inl_error *e)
{
    checker c = {.w = plan->priv, .plan = plan, .error = e};
    c.starts = calloc(plan->text_size / 8 + 1, 1);
    if (!c.starts) return inl_fail(e, INL_ERR_NO_MEMORY, "memory is used up");
    inl_status status = INL_OK;
    for (int look = 0; look < 2; look++)
        for (uint32_t i = 0; i < plan->cfg->proc_count && !status; i++)
            if (plan->procs[i].new_addr) status = decode_proc(&c, i, look);
    if (!status) status = check_map(&c);
    if (!status) status = check_tables(&c);
    if (!status) status = check_patches(&c);
    free(c.starts);
    return status;
}
