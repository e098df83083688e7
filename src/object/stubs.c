/* Stubs: what was displaced, and the calls of the recorder, in a section beside the original one and in its group.
 *
 *     stub:  [call of the recorder: entry]  first instructions    jump back
 *     stub:  last instructions              [call of the recorder: exit]  return, or jump away
 *
 * A displaced instruction keeps its relocations, at its new place. What the assembler had resolved (distances within
 * the section) becomes a relocation, but for branches to what is displaced into the same section of stubs, which are
 * resolved here. What tells the recorder of a procedure is a descriptor (src/record), which is named by its distance.
 */
#include "base/search.h"
#include "object/file.h"
#include "record/tells.h"

#include <stdio.h>

typedef struct fix { /* a branch from a stub to displaced code */
    uint32_t stubs;
    size_t field;
    uint64_t target;
} fix;

typedef struct maker {
    object_plan *p;
    object_file *o;
    object_stubs *out;
    uint32_t *tells; /* by procedure: its descriptor's offset + 1 */
    INL_VEC(fix) fixes;
    bool failed;
} maker;

static inl_bytes *bytes_of(const maker *m, uint32_t section) { return &m->o->sections.items[section].data; }

static void need(maker *m, bool good) { m->failed |= !good; }

/* --- where displaced code went --- */

static const object_stub *stub_of(const object_stubs *s, const object_plan *p, uint64_t addr)
{
    size_t behind = INL_FIRST(s->count, k, p->regions.items[s->items[k].region].from > addr);
    const object_stub *one = behind ? &s->items[behind - 1] : NULL;
    return one && addr < p->regions.items[one->region].end ? one : NULL;
}

bool object_new_place(const object_plan *p, const object_stubs *s, uint64_t addr, uint32_t *section, uint64_t *offset)
{
    const object_stub *stub = stub_of(s, p, addr);
    if (!stub) return false;
    size_t i = INL_FIRST(stub->places.count, k, stub->places.items[k].old >= addr);
    if (i == stub->places.count || stub->places.items[i].old != addr) return false;
    *section = stub->section;
    *offset = stub->places.items[i].offset;
    return true;
}

/* --- sections beside the original --- */

static uint32_t stubs_of(maker *m, uint32_t section)
{
    char name[600];
    object_section *s = &m->o->sections.items[section];
    if (s->stubs) return s->stubs;
    bool plain = strcmp(s->name, ".text") == 0 || strncmp(s->name, ".text.", 6) == 0;
    snprintf(name, sizeof name, "%s%s", plain ? ".text.inlay" : s->name, plain ? s->name + 5 : ".inlay");
    uint32_t added = object_add_section(m->o, name, SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 16, s->group);
    m->o->sections.items[section].stubs = added;
    return added;
}

static uint32_t tells_of(maker *m, uint32_t section)
{
    char name[600];
    object_section *s = &m->o->sections.items[section];
    if (s->tells) return s->tells;
    snprintf(name, sizeof name, ".data.inlay%s", s->name);
    uint32_t added = object_add_section(m->o, name, SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, 8, s->group);
    m->o->sections.items[section].tells = added;
    return added;
}

/* The descriptor of a procedure, made when first asked for: its name behind it. *section: where it is, beside the
 * procedure's own wherever its parts are. */
static uint32_t descriptor(maker *m, uint32_t proc, uint32_t *section)
{
    const cfg_proc *p = &m->o->cfg->procs[proc];
    uint64_t offset;
    uint32_t home = object_section_at(m->o, p->addr, &offset), in = *section = tells_of(m, home);
    if (m->tells[proc]) return m->tells[proc] - 1;
    inl_bytes *b = bytes_of(m, in);
    inl_bytes_align(b, 8);
    size_t at = b->size;
    record_tells t = {.low = RECORD_NO_STACK,
                      .open = 1,
                      .size = (uint32_t)p->size,
                      .name = (int32_t)sizeof t,
                      .flags = m->p->entries ? RECORD_ENTRIES : 0};
    inl_bytes_put(b, &t, sizeof t);
    inl_bytes_put(b, p->name, strlen(p->name) + 1);
    need(m, object_add_rela(m->o, in, at + offsetof(record_tells, code), m->o->isa->relative64,
                            object_section_symbol(m->o, home), (int64_t)offset));
    m->tells[proc] = (uint32_t)at + 1;
    return (uint32_t)at;
}

/* --- code --- */

static void put_record(maker *m, uint32_t stubs, uint32_t proc, bool leaves)
{
    object_file *o = m->o;
    static const char *const names[2][2] = {{RECORD_ENTER, RECORD_LEAVE}, {RECORD_ENTER_KEEPING, RECORD_LEAVE_KEEPING}};
    bool keeps = m->p->keeps[proc];
    uint32_t *symbol = &o->recorders[keeps][leaves];
    const Elf64_Sym undefined = {.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_NOTYPE)};
    if (!*symbol) *symbol = object_add_symbol(o, names[keeps][leaves], undefined, 0);
    uint32_t section;
    uint64_t at = descriptor(m, proc, &section);
    object_hook h;
    o->isa->record(bytes_of(m, stubs), leaves, keeps, &h);
    need(m, object_add_rela(o, stubs, h.call, o->isa->call32, *symbol, -(int64_t)o->isa->field_end));
    for (unsigned i = 0; i < h.count; i++)
        need(m, object_add_rela(o, stubs, h.fields[i].at, o->isa->relative32, object_section_symbol(o, section),
                                (int64_t)(at + h.fields[i].member + (h.fields[i].at - h.fields[i].base))));
}

/* The field in the stubs leads to an address of the analysis. */
static void lead_to(maker *m, uint32_t stubs, size_t field, uint64_t target, uint64_t end)
{
    uint64_t offset;
    uint32_t home = object_section_at(m->o, target, &offset);
    need(m, home && object_add_rela(m->o, stubs, field, m->o->isa->relative32, object_section_symbol(m->o, home),
                                    (int64_t)(offset - (end - field))));
}

static bool is_displaced(const maker *m, uint64_t addr)
{
    size_t behind = INL_FIRST(m->p->regions.count, k, m->p->regions.items[k].from > addr);
    return behind && addr < m->p->regions.items[behind - 1].end;
}

static void lead_branch(maker *m, uint32_t stubs, size_t field, uint64_t target)
{
    uint32_t b = cfg_block_at(m->o->cfg, target);
    if (b != CFG_NONE && m->p->covered[b] && is_displaced(m, target))
        need(m, inl_vec_push(&m->fixes, (fix){stubs, field, target}));
    else lead_to(m, stubs, field, target, field + m->o->isa->field_end);
}

/* The relocation of a displaced instruction is there from now on. */
static bool take_rela(maker *m, uint32_t section, uint64_t offset, const isa_insn *in, uint32_t stubs, size_t to)
{
    bool any = false;
    for (uint64_t k = offset; k < offset + in->len; k++) {
        Elf64_Rela *r = object_rela_in(&m->o->sections.items[section], k, k + 1);
        uint32_t type = r ? (uint32_t)ELF64_R_TYPE(r->r_info) : m->o->isa->none;
        if (type == m->o->isa->none) continue;
        need(m, object_add_rela(m->o, stubs, to + (k - offset), type, (uint32_t)ELF64_R_SYM(r->r_info), r->r_addend));
        r->r_info = ELF64_R_INFO(0, m->o->isa->none);
        any = true;
    }
    return any;
}

static bool is_branch(const isa_insn *in) { return in->flow == ISA_FLOW_JUMP || in->flow == ISA_FLOW_COND; }

/* A direct branch becomes one that reaches everywhere; its relocation's place is told from its end. */
static void put_branch(maker *m, uint32_t section, uint64_t offset, const isa_insn *in, uint32_t stubs)
{
    size_t field;
    m->o->isa->branch(bytes_of(m, stubs), in, &field);
    size_t end = field + m->o->isa->field_end;
    if (!take_rela(m, section, offset, in, stubs, end - in->len)) lead_branch(m, stubs, field, in->target);
}

static void put_insn(maker *m, uint32_t section, const isa_insn *in, uint32_t stubs)
{
    uint64_t offset = in->addr - m->o->sections.items[section].at;
    inl_bytes *b = bytes_of(m, stubs);
    if (is_branch(in)) {
        put_branch(m, section, offset, in, stubs);
        return;
    }
    size_t at = b->size;
    inl_bytes_put(b, m->o->sections.items[section].data.data + offset, in->len);
    bool any = take_rela(m, section, offset, in, stubs, at);
    if (!any && in->flow == ISA_FLOW_CALL) lead_branch(m, stubs, at + in->len - m->o->isa->field_end, in->target);
    if (any || !(in->bits & ISA_BIT_PCREL_MEM)) return;
    lead_to(m, stubs, at + in->disp_at, in->target, at + in->len);
}

/* --- a stub --- */

static bool begins(const maker *m, uint32_t b, uint64_t addr, uint32_t *proc)
{
    const cfg_block *k = &m->o->cfg->blocks[b];
    *proc = m->p->parent[k->proc];
    return m->o->cfg->procs[k->proc].first_block == b && *proc == k->proc && !m->p->why[*proc] &&
           addr == object_first_movable(m->p, k);
}

static void put_one(maker *m, object_stub *s, uint32_t section, const isa_insn *in)
{
    uint32_t b = cfg_block_covering(m->o->cfg, in->addr), proc;
    const cfg_block *k = &m->o->cfg->blocks[b];
    bool conditional = false, last = in->addr + in->len == k->addr + k->size;
    need(m, inl_vec_push(&s->places, (object_place){in->addr, bytes_of(m, s->section)->size}));
    if (begins(m, b, in->addr, &proc)) put_record(m, s->section, proc, false);
    bool leaves = last && !m->p->why[proc] && !m->p->entries && object_block_leaves(m->p, b, &conditional);
    size_t over = 0;
    isa_insn out = *in;
    if (leaves && conditional) {
        m->o->isa->skip_unless(bytes_of(m, s->section), in, &over);
        out.flow = ISA_FLOW_JUMP;
    }
    if (leaves) put_record(m, s->section, proc, true);
    put_insn(m, section, &out, s->section);
    if (leaves && conditional) m->o->isa->skip_here(bytes_of(m, s->section), over);
}

/* For debuggers and profilers. */
static void name_stub(maker *m, object_stub *s)
{
    uint32_t proc = cfg_proc_covering(m->o->cfg, s->places.items[0].old);
    char name[2048];
    snprintf(name, sizeof name, "%.2000s.inlay", m->o->cfg->procs[m->p->parent[proc]].name);
    Elf64_Sym symbol = {
        .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC), .st_value = s->begin, .st_size = s->end - s->begin};
    s->symbol = object_add_symbol(m->o, name, symbol, s->section);
    need(m, s->symbol != 0);
}

static void put_stub(maker *m, uint32_t number)
{
    const object_region *r = &m->p->regions.items[number];
    uint64_t offset;
    uint32_t section = object_section_at(m->o, r->from, &offset);
    object_stub s = {.section = stubs_of(m, section), .home = section, .region = number};
    isa_insn in = {0};
    if (!s.section) {
        m->failed = true;
        return;
    }
    s.begin = bytes_of(m, s.section)->size;
    for (uint64_t at = r->from; at < r->end && !m->failed; at += in.len) {
        need(m, object_insn_at(m->o, at, &in));
        if (!m->failed) put_one(m, &s, section, &in);
    }
    if (object_goes_on(&in)) {
        size_t field;
        need(m, inl_vec_push(&s.places, (object_place){r->end, bytes_of(m, s.section)->size}));
        m->o->isa->jump(bytes_of(m, s.section), &field);
        lead_branch(m, s.section, field, r->end);
    }
    s.end = bytes_of(m, s.section)->size;
    name_stub(m, &s);
    need(m, inl_vec_push(m->out, s));
}

/* --- the original code --- */

/* What is displaced is never executed in its old place, but for the jump. */
static void put_jump(maker *m, const object_stub *s)
{
    object_file *o = m->o;
    const object_region *r = &m->p->regions.items[s->region];
    uint64_t at = r->from - o->sections.items[s->home].at, end = r->end - o->sections.items[s->home].at;
    inl_bytes *b = bytes_of(m, s->home), code = {0};
    size_t field;
    o->isa->fill(b->data + at, end - at);
    if (!r->jumps) return;
    o->isa->jump(&code, &field);
    if (at + code.size > b->size) inl_bytes_reserve(b, at + code.size - b->size);
    inl_bytes_set(b, at, code.data, code.size);
    need(m, !code.failed &&
                object_add_rela(o, s->home, at + field, o->isa->relative32, object_section_symbol(o, s->section),
                                (int64_t)(s->begin - o->isa->field_end)));
    inl_bytes_free(&code);
}

/* A branch that stays leads to displaced code: its relocation, if it has one, is replaced. */
static void aim(maker *m, uint64_t branch)
{
    isa_insn in;
    unsigned field;
    uint32_t stubs;
    uint64_t place, offset;
    if (is_displaced(m, branch)) return;
    uint32_t home = object_section_at(m->o, branch, &offset);
    if (!object_insn_at(m->o, branch, &in) || !m->o->isa->reaches(&in, &field) ||
        !object_new_place(m->p, m->out, in.target, &stubs, &place)) {
        m->failed = true;
        return;
    }
    Elf64_Rela *r = object_rela_in(&m->o->sections.items[home], offset + field, offset + field + 1);
    if (r) r->r_info = ELF64_R_INFO(0, m->o->isa->none);
    need(m, object_add_rela(m->o, home, offset + field, m->o->isa->relative32, object_section_symbol(m->o, stubs),
                            (int64_t)(place - m->o->isa->field_end)));
}

static void resolve(maker *m, const fix *f)
{
    uint32_t section;
    uint64_t place;
    if (!object_new_place(m->p, m->out, f->target, &section, &place)) {
        m->failed = true;
        return;
    }
    int32_t distance = (int32_t)(place - f->field - m->o->isa->field_end);
    if (section == f->stubs) inl_bytes_set(bytes_of(m, f->stubs), f->field, &distance, sizeof distance);
    else
        need(m, object_add_rela(m->o, f->stubs, f->field, m->o->isa->relative32, object_section_symbol(m->o, section),
                                (int64_t)(place - m->o->isa->field_end)));
}

inl_status object_put_stubs(object_plan *p, object_stubs *out, inl_error *e)
{
    maker m = {.p = p, .o = p->o, .out = out};
    m.tells = inl_arena_alloc(&p->o->arena, ((size_t)p->o->cfg->proc_count + 1) * sizeof *m.tells);
    need(&m, m.tells != NULL);
    for (uint32_t i = 0; i < p->regions.count && !m.failed; i++) put_stub(&m, i);
    for (size_t i = 0; i < p->aimed.count && !m.failed; i++) aim(&m, p->aimed.items[i]);
    for (size_t i = 0; i < m.fixes.count && !m.failed; i++) resolve(&m, &m.fixes.items[i]);
    for (size_t i = 0; i < out->count && !m.failed; i++) put_jump(&m, &out->items[i]);
    inl_vec_free(&m.fixes);
    return m.failed ? object_no_memory(p->o, e) : INL_OK;
}

void object_stubs_free(object_stubs *s)
{
    for (size_t i = 0; i < s->count; i++) inl_vec_free(&s->items[i].places);
    inl_vec_free(s);
}
