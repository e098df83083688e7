/* Which code is displaced.
 *
 * Each entry and exit wants a jump to its stub: 5 bytes that no one else comes to. At an entry these are the first
 * instructions; at an exit the last ones of its block, together with padding behind. A block that is too short is
 * displaced whole, and then whoever comes to it must come to its copy:
 *
 *     it falls in          what is in front is displaced with it, in one piece
 *     a long branch        gets another displacement, in place (`aimed`)
 *     a short branch       is displaced itself, in a piece that needs room likewise
 *     a call in front      is displaced, where no exception handler would miss it
 *     anything else        the procedure is left alone
 *
 * A piece (region) begins with the jump unless all who come to it have been caught so (`covered`). */
#include "object/file.h"

#include <stdlib.h>
#include <string.h>

static const char no_room_entry[] = "there is no room for a jump at its entry";
static const char no_room_exit[] = "there is no room for a jump at one of its exits";

bool object_insn_at(const object_file *o, uint64_t addr, isa_insn *out)
{
    const uint8_t *bytes;
    size_t have = image_bytes(o->im, addr, &bytes);
    isa_result r = have ? o->cfg->isa->decode(bytes, have, addr, out) : ISA_TRUNCATED;
    return r == ISA_OK || r == ISA_UNKNOWN;
}

static const cfg_block *block_of(const object_plan *p, uint32_t b) { return &p->o->cfg->blocks[b]; }
static uint64_t end_of(const cfg_block *b) { return b->addr + b->size; }

/* The instruction that ends at or covers `end` - 1, of a block. */
static bool insn_before(const object_file *o, const cfg_block *b, uint64_t end, isa_insn *out)
{
    for (uint64_t at = b->addr; at < end && object_insn_at(o, at, out); at += out->len)
        if (at + out->len >= end) return true;
    return false;
}

bool object_last_insn(const object_file *o, const cfg_block *b, isa_insn *out)
{
    return insn_before(o, b, end_of(b), out);
}

/* --- exits --- */

/* A jump to a part of the same procedure (NAME.cold) or back is none. */
static bool is_same(const object_plan *p, uint32_t proc, uint64_t target)
{
    uint32_t other = cfg_proc_covering(p->o->cfg, target);
    return other != CFG_NONE && p->parent[other] == p->parent[proc];
}

/* What becomes of control at a jump or return that is not what it is written as. */
static cfg_departure departure(const object_plan *p, const cfg_block *b, const isa_insn *in)
{
    isa_insn before;
    unsigned reg;
    if (in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_RETURN) return CFG_AS_WRITTEN;
    bool is_first = in->addr == b->addr || !insn_before(p->o, b, in->addr, &before);
    return cfg_thunks_departure(p->thunks, p->o->im, in, is_first ? NULL : &before, &reg);
}

static bool has_targets(const object_plan *p, const cfg_block *b)
{
    const cfg_edge *e = p->o->cfg->edges + b->first_edge;
    for (unsigned i = 0; i < b->edge_count; i++)
        if (e[i].kind == CFG_EDGE_TABLE) return true;
    return false;
}

/* call 1f; pause; lfence; 1: mov %rax, (%rsp); ret: what is known of the jump is said of the call, where the stack is
 * as it is at an exit. */
static bool ends_jump(const object_plan *p, const cfg_block *b)
{
    const cfg_proc *proc = &p->o->cfg->procs[b->proc];
    isa_insn in;
    for (uint32_t i = proc->first_block; i < proc->first_block + proc->block_count; i++) {
        const cfg_block *from = block_of(p, i);
        bool known = from->flags & CFG_BLOCK_TAIL_IND || has_targets(p, from);
        if (from->flags & CFG_BLOCK_CALL && known && object_last_insn(p->o, from, &in) && in.target == b->addr)
            return true;
    }
    return false;
}

bool object_is_thunk(const object_plan *p, uint64_t addr)
{
    unsigned reg;
    const isa_insn jump = {.flow = ISA_FLOW_JUMP, .target = addr};
    return cfg_thunks_departure(p->thunks, p->o->im, &jump, NULL, &reg) == CFG_TO_REGISTER;
}

bool object_block_leaves(const object_plan *p, uint32_t number, bool *conditional)
{
    const cfg_block *b = block_of(p, number);
    const cfg_edge *e = p->o->cfg->edges + b->first_edge;
    isa_insn in;
    *conditional = false;
    if (!object_last_insn(p->o, b, &in)) return b->flags & (CFG_BLOCK_RETURN | CFG_BLOCK_TAIL_IND);
    switch (departure(p, b, &in)) {
    case CFG_TO_CALLER: return !is_same(p, b->proc, in.target);
    case CFG_TO_CALLEE: return false;
    case CFG_TO_REGISTER:
    case CFG_TO_TOP: return b->flags & CFG_BLOCK_TAIL_IND && !has_targets(p, b) && !ends_jump(p, b);
    case CFG_AS_WRITTEN: break;
    }
    if (b->flags & (CFG_BLOCK_RETURN | CFG_BLOCK_TAIL_IND)) return true;
    if (in.flow != ISA_FLOW_JUMP && in.flow != ISA_FLOW_COND) return false;
    for (unsigned i = 0; i < b->edge_count; i++) {
        if (e[i].kind != CFG_EDGE_TAIL || is_same(p, b->proc, e[i].target)) continue;
        *conditional = in.flow == ISA_FLOW_COND;
        return true;
    }
    return false;
}

/* --- who comes to a block --- */

static uint32_t edge_to(const object_plan *p, const cfg_edge *e)
{
    return e->to != CFG_NONE ? e->to : cfg_block_at(p->o->cfg, e->target);
}

bool object_index_edges(object_plan *p)
{
    const cfg_program *c = p->o->cfg;
    p->in_at = calloc((size_t)c->block_count + 2, sizeof *p->in_at);
    p->in = calloc((size_t)c->edge_count + 1, sizeof *p->in);
    if (!p->in_at || !p->in) return false;
    for (uint32_t i = 0; i < c->edge_count; i++) {
        uint32_t to = edge_to(p, &c->edges[i]);
        if (to != CFG_NONE) p->in_at[to + 2]++;
    }
    for (uint32_t b = 0; b < c->block_count; b++) p->in_at[b + 2] += p->in_at[b + 1];
    for (uint32_t i = 0; i < c->edge_count; i++) {
        uint32_t to = edge_to(p, &c->edges[i]);
        if (to != CFG_NONE) p->in[p->in_at[to + 1]++] = i;
    }
    return true;
}

/* --- room --- */

/* Up to where nothing is executed behind a block that control does not leave through its end. */
uint64_t object_dead_end(const object_plan *p, uint64_t from)
{
    const object_file *o = p->o;
    uint64_t offset, at = from;
    uint32_t section = object_section_at(o, from, &offset);
    if (!section) return from;
    uint64_t end = o->sections.items[section].at + o->sections.items[section].data.size;
    while (at < end && cfg_block_covering(o->cfg, at) == CFG_NONE) {
        const uint8_t *bytes;
        unsigned size;
        size_t have = image_bytes(o->im, at, &bytes);
        if (have > end - at) have = end - at;
        if (!have || !o->isa->is_padding(bytes, have, &size)) break;
        at += size;
    }
    return at == end ? end + 16 : at; /* a section may grow */
}

bool object_goes_on(const isa_insn *in)
{
    return in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_JUMP_IND && in->flow != ISA_FLOW_RETURN &&
           in->flow != ISA_FLOW_TRAP;
}

static bool falls_through(const object_plan *p, uint32_t number)
{
    const cfg_block *b = block_of(p, number);
    isa_insn in;
    if (!object_last_insn(p->o, b, &in)) return true;
    return object_goes_on(&in) && !(b->flags & CFG_BLOCK_NO_RETURN);
}

/* Where what is displaced from `from` on ends, with the blocks behind that it takes along, and the room there is. */
static uint64_t region_end(const object_plan *p, uint32_t b, uint64_t *room)
{
    for (;;) {
        uint64_t end = end_of(block_of(p, b));
        *room = end;
        uint32_t next = b + 1 < p->o->cfg->block_count ? cfg_block_at(p->o->cfg, end) : CFG_NONE;
        if (next != CFG_NONE && p->covered[next] && p->from[next] == end) {
            b = next;
            continue;
        }
        if (!falls_through(p, b) && next == CFG_NONE) *room = object_dead_end(p, end);
        return end;
    }
}

static void change(object_plan *p, uint32_t b, uint64_t from)
{
    if (p->from[b] && p->from[b] <= from) return;
    p->from[b] = from;
    inl_vec_push(&p->undo, b);
}

/* A call that -pg has put in (and -mfentry at the very begin). */
static bool counts_calls(const object_plan *p, const isa_insn *in)
{
    const object_file *o = p->o;
    uint64_t offset;
    uint32_t section = object_section_at(o, in->addr, &offset);
    const Elf64_Rela *r = section ? object_rela_in(&o->sections.items[section], offset, offset + in->len) : NULL;
    const uint32_t symbol = r ? (uint32_t)ELF64_R_SYM(r->r_info) : 0;
    if (!symbol || symbol >= o->symbols.count) return false;
    const char *name = (const char *)o->strings.data + o->symbols.items[symbol].s.st_name;
    const char *const *counter = cfg_call_counters;
    while (*counter && strcmp(name, *counter)) counter++;
    return *counter;
}

/* What throws is not displaced out of the exception table's sight: a call that it catches, or does not name (then
 * nothing may pass); another instruction that it catches, since a handler of signals may throw. */
static bool may_move_thrower(const object_plan *p, const cfg_block *b, const isa_insn *in)
{
    const image_unwind_range *r = image_unwind_at(p->o->im, b->addr);
    bool call = in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND;
    if (!r || !r->lsda || (call ? counts_calls(p, in) : !p->o->isa->may_fault(in))) return true;
    image_lsda l = {0};
    bool named = false, caught = false;
    if (!image_lsda_read(p->o->im, r->lsda, r->addr, &l)) caught = true;
    for (size_t i = 0; i < l.count; i++) {
        bool here = in->addr - l.sites[i].start < l.sites[i].length;
        named |= here;
        caught |= here && l.sites[i].landing_pad;
    }
    image_lsda_free(&l);
    return !caught && (named || !call);
}

typedef struct moving { /* what its relocations say of an instruction */
    bool unknown, glued;
} moving;

static moving look_at(const object_plan *p, const isa_insn *in)
{
    const object_isa *a = p->o->isa;
    uint64_t offset;
    uint32_t section = object_section_at(p->o, in->addr, &offset);
    moving m = {.unknown = !section};
    unsigned size;
    for (uint64_t k = offset; section && k < offset + in->len; k++) {
        Elf64_Rela *r = object_rela_in(&p->o->sections.items[section], k, k + 1);
        m.unknown |= r && a->reloc(ELF64_R_TYPE(r->r_info), &size) == OBJECT_UNKNOWN;
        m.glued |= r && a->glues(ELF64_R_TYPE(r->r_info));
    }
    return m;
}

/* What is glued together stays so: it may not begin behind glue, or end with it. */
static bool may_move(const object_plan *p, const cfg_block *b, uint64_t from, uint64_t end)
{
    isa_insn in;
    bool glued = from > b->addr && insn_before(p->o, b, from, &in) && look_at(p, &in).glued;
    if (glued || object_is_named(p, from + 1, end)) return false;
    for (uint64_t at = from; at < end; at += in.len) {
        if (!object_insn_at(p->o, at, &in) || p->o->isa->fixed(&in) || object_call_stays(p, &in) ||
            !may_move_thrower(p, b, &in))
            return false;
        moving m = look_at(p, &in);
        if (m.unknown) return false;
        glued = m.glued;
    }
    return !glued;
}

static bool make_room(object_plan *p, uint32_t b, unsigned depth);

/* All who come to a block that is displaced whole come to its copy. */
static bool catch_all(object_plan *p, uint32_t number, unsigned depth)
{
    const cfg_program *c = p->o->cfg;
    const cfg_block *b = block_of(p, number);
    enum { HIDDEN = CFG_BLOCK_ENTRY | CFG_BLOCK_TABLE | CFG_BLOCK_LANDING | CFG_BLOCK_ADDRESS_TAKEN };
    if (b->flags & HIDDEN || object_is_named(p, b->addr, b->addr + 1) || p->in_at[number] == p->in_at[number + 1])
        return false;
    p->covered[number] = 1;
    inl_vec_push(&p->undo, number);
    for (uint32_t i = p->in_at[number]; i < p->in_at[number + 1]; i++) {
        const cfg_edge *e = &c->edges[p->in[i]];
        const cfg_block *from = block_of(p, e->from);
        isa_insn in;
        unsigned field;
        if (!object_last_insn(p->o, from, &in)) return false;
        bool branch = (e->kind == CFG_EDGE_TAKEN || e->kind == CFG_EDGE_JUMP || e->kind == CFG_EDGE_TAIL) &&
                      in.target == b->addr;
        if (!branch && end_of(from) != b->addr) return false; /* by a way that is not seen here */
        if (branch && p->o->isa->reaches(&in, &field)) {
            if (!inl_vec_push(&p->aimed, in.addr)) return false;
            if (end_of(from) != b->addr || !falls_through(p, e->from)) continue;
        }
        change(p, e->from, in.addr);
        if (!make_room(p, e->from, depth + 1)) return false;
    }
    return true;
}

uint64_t object_first_movable(const object_plan *p, const cfg_block *b)
{
    isa_insn in;
    bool marked = b->flags & CFG_BLOCK_ENTRY && object_insn_at(p->o, b->addr, &in) && p->o->isa->is_landing(&in);
    return b->addr + (marked ? in.len : 0);
}

static bool make_room(object_plan *p, uint32_t number, unsigned depth)
{
    const cfg_block *b = block_of(p, number);
    uint64_t room;
    isa_insn in;
    if (depth > 32) return false;
    for (;;) {
        if (p->from[number] < p->head[number])
            change(p, number, object_first_movable(p, b)); /* one piece with the entry's */
        if (!may_move(p, b, p->from[number], end_of(b))) return false;
        if (p->covered[number] && p->from[number] == b->addr) return true;
        region_end(p, number, &room);
        if (room - p->from[number] >= p->o->isa->jump_size) return true;
        if (p->from[number] <= object_first_movable(p, b)) break;
        if (!insn_before(p->o, b, p->from[number], &in)) return false;
        change(p, number, in.addr);
    }
    return p->from[number] == b->addr && catch_all(p, number, depth);
}

/* --- procedures --- */

/* An entry that branches within the procedure lead to, too, would count them. */
static bool loops_to_entry(const object_plan *p, const cfg_proc *proc)
{
    for (uint32_t i = p->in_at[proc->first_block]; i < p->in_at[proc->first_block + 1]; i++) {
        const cfg_edge *e = &p->o->cfg->edges[p->in[i]];
        if (p->parent[block_of(p, e->from)->proc] == p->parent[block_of(p, proc->first_block)->proc] &&
            e->kind != CFG_EDGE_TAIL)
            return true;
    }
    return false;
}

/* The first instructions, as many as a jump wants: of the first block, and where it is too short, of those behind that
 * nobody else comes to. */
static const char *displace_entry(object_plan *p, const cfg_proc *proc)
{
    uint32_t number = proc->first_block;
    const cfg_block *b = block_of(p, number);
    const unsigned wanted = p->o->isa->jump_size;
    uint64_t from = object_first_movable(p, b), at = from, room;
    isa_insn in;
    if (loops_to_entry(p, proc)) return "branches of its own lead to its entry";
    for (bool glued = false; at < end_of(b) && (glued || at - from < wanted) && object_insn_at(p->o, at, &in);) {
        glued = look_at(p, &in).glued;
        at += in.len;
    }
    if (from >= end_of(b)) return no_room_entry;
    if (!may_move(p, b, from, at)) return "its first instructions cannot be displaced";
    p->head[number] = at;
    if (at - from >= wanted) return NULL;
    change(p, number, from);
    for (uint32_t last = number; region_end(p, number, &room), room - from < wanted;) {
        uint32_t next = cfg_block_at(p->o->cfg, end_of(block_of(p, last)));
        if (next == CFG_NONE || !falls_through(p, last) || block_of(p, next)->proc != b->proc) return no_room_entry;
        const cfg_block *n = block_of(p, next);
        change(p, next, n->addr);
        if (!may_move(p, n, n->addr, end_of(n)) || !catch_all(p, next, 1)) return no_room_entry;
        last = next;
    }
    return NULL;
}

static const char *displace_exits(object_plan *p, uint32_t part)
{
    const cfg_proc *proc = &p->o->cfg->procs[part];
    for (uint32_t b = proc->first_block; b < proc->first_block + proc->block_count; b++) {
        bool conditional;
        isa_insn in;
        if (!object_block_leaves(p, b, &conditional)) continue;
        if (!object_last_insn(p->o, block_of(p, b), &in)) return "an exit is not understood";
        change(p, b, in.addr);
        if (!make_room(p, b, 0)) return no_room_exit;
    }
    return NULL;
}

const char *object_displace(object_plan *p, uint32_t number)
{
    const cfg_program *c = p->o->cfg;
    const size_t aimed = p->aimed.count, blocks = c->block_count;
    uint64_t *from = malloc((blocks + 1) * sizeof *from);
    uint8_t *covered = malloc(blocks + 1);
    const char *why = "out of memory";
    p->undo.count = 0;
    if (from && covered) {
        memcpy(from, p->from, blocks * sizeof *from);
        memcpy(covered, p->covered, blocks);
        why = displace_entry(p, &c->procs[number]);
        if (!why && !p->entries) why = displace_exits(p, number);
        for (size_t i = 0; i < p->parts.count && !why && !p->entries; i++)
            if (p->parent[p->parts.items[i]] == number) why = displace_exits(p, p->parts.items[i]);
    }
    for (size_t i = 0; i < p->undo.count && why; i++) {
        p->from[p->undo.items[i]] = from[p->undo.items[i]];
        p->covered[p->undo.items[i]] = covered[p->undo.items[i]];
    }
    if (why) p->aimed.count = aimed;
    if (why) p->head[c->procs[number].first_block] = 0;
    free(from);
    free(covered);
    return why;
}
