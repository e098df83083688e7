/* Indirect jumps: where they go.
 *
 *     mov %edi,%edi                        an index
 *     lea table(%rip),%rdx                 what the entries are added to, mostly the table itself
 *     movslq (%rdx,%rdi,4),%rax            relative table: base + entry
 *     add %rdx,%rax
 *     jmp *%rax
 *
 *     ldrb w0,[x0,w1,uxtw]                 smaller entries, counted in instructions
 *     adr x1,somewhere
 *     add x0,x1,w0,sxtb #2
 *     br x0
 *
 *     jmp *table(,%rdi,8)                  absolute table, or loaded first
 *
 *     movslq -16(%rdx,%rax,4),%rax         the index is known to be 4 at least: the table begins at the base
 *
 *     lea table(%rip),%rax                 ... of 8 bytes (-mcmodel=large)
 *     add (%rax,%rdi,8),%rax
 *
 *     lea slots(%rip),%r9                  no table at all: pieces of code of one size
 *     shl $6,%ecx                          (or lea (%r9,%rcx,8),%rcx)
 *     add %r9,%rcx
 *     jmp *%rcx
 *
 *     mov (%rdx,%rax,8),%rax; jmp *%rax    computed goto: any label whose address is taken
 *     mov 8(%rdi),%rax; jmp *%rax          a tail call when the stack is as it was at the entry
 *     cmove %rcx,%rax; jmp *%rax           likewise, of one of two procedures
 *
 *     mov %rcx,%rsp; pop %rcx; jmp *%rcx   a return, to another frame perhaps (__builtin_eh_return)
 *     mov 48(%rdi),%rsp; jmp *56(%rdi)     likewise, where other registers come from there too (restores.c)
 *
 * What is none of these is said to be unknown. */
#include "cfg/work.h"

typedef enum form_kind {
    FORM_RELATIVE,
    FORM_ABSOLUTE,
    FORM_SLOTS,
    FORM_LOADED,
    FORM_POINTER,
    FORM_COMPUTED,
} form_kind;

typedef struct form {
    form_kind kind;
    uint64_t table, base, named_at, added_at, read_at;
    cfg_point load;   /* where the table is read, or what it is read with is made */
    uint32_t skipped; /* values of the index below the table's first entry, which it never has */
    bool displaced;   /* the table's address is a named one and a displacement, which may be for such an index */
    uint8_t index;    /* register, ISA_NO_REG: not known */
    uint8_t entry_size, shift;
    bool unsigned_entry;
    bool single;          /* always the same entry is read */
    bool each_names;      /* as in cfg_table */
    bool unusual;         /* no compiler writes it so */
    bool or_label;        /* ... or it goes to a label whose address is taken */
    bool leaps;           /* the jump is written as something else (thunks.c) */
    bool pushed, returns; /* ... its target is pushed first; it is a return */
    bool popped;          /* its target is what has just been on top of the stack, as a return's */
} form;

static form just(form_kind kind) { return (form){.kind = kind, .index = ISA_NO_REG}; }

/* The table's offset was computed beforehand: lea 0(,%rax,4),%rdx, or shl $2. The index is what went in. */
static void find_index(cfg_view *v, unsigned reg, unsigned size, form *f)
{
    cfg_defs d;
    cfg_shape s;
    f->index = ISA_NO_REG;
    if (reg >= 64) return;
    cfg_reach(v, reg, f->load, &d);
    if (d.unknown || d.count != 1) return;
    cfg_shape_of(v->work, &d.def[0].in, &s);
    if (s.sem == SEM_LEA && s.has_mem && s.mem.base == ISA_NO_REG && s.mem.disp == 0 && s.mem.scale == size)
        f->index = s.mem.index;
    else if (s.sem == SEM_SHL && s.has_src && s.src.kind == ISA_OPERAND_IMM && 1u << (s.src.imm & 31) == size)
        f->index = s.dst.reg;
    if (f->index != ISA_NO_REG) f->load = d.def[0].at;
}

/* Which part of the operand is the table? The other one is the index. */
static bool find_table(cfg_view *v, const isa_mem *m, unsigned size, cfg_point at, form *f)
{
    cfg_constant c = {0};
    f->load = at;
    f->index = m->scale == size ? m->index : ISA_NO_REG;
    f->table = (uint64_t)m->disp;
    if (m->base == ISA_NO_REG) return m->index != ISA_NO_REG;
    if (cfg_constant_of(v, m->base, at, &c)) {
        if (m->scale == 1 && size > 1) find_index(v, m->index, size, f);
    } else if (m->scale == 1 && m->index != ISA_NO_REG && cfg_constant_of(v, m->index, at, &c)) {
        find_index(v, m->base, size, f);
    } else {
        return false;
    }
    f->table += c.value;
    f->displaced = m->disp != 0;
    f->named_at = m->disp ? 0 : c.named_at;
    return true;
}

/* A 64-bit load: from a table of addresses, or from anywhere. */
static form absolute(cfg_view *v, const isa_mem *m, cfg_point at)
{
    form f = just(FORM_ABSOLUTE);
    uint32_t count;
    const isa_insn *in = cfg_view_insns(v, at.block, &count);
    f.named_at = f.read_at = at.index < count ? in[at.index].addr : 0;
    if (m->segment || m->size != 8) return just(FORM_COMPUTED);
    if (m->bits & ISA_MEM_PCREL || m->index == ISA_NO_REG) return just(FORM_POINTER);
    return find_table(v, m, 8, at, &f) ? f : just(FORM_LOADED);
}

/* The one definition of a register, through copies and stack slots. */
static bool single_def(cfg_view *v, unsigned reg, cfg_point at, cfg_def *out, cfg_shape *s)
{
    for (int hops = 0; hops < 8; hops++) {
        cfg_defs d;
        cfg_reach(v, reg, at, &d);
        if (d.unknown || d.count != 1) return false;
        *out = d.def[0];
        cfg_shape_of(v->work, &out->in, s);
        if (s->sem != SEM_MOV || !s->has_src || s->dst.size != 8) return true;
        at = out->at;
        if (s->src.kind == ISA_OPERAND_MEM && s->has_mem && cfg_is_slot(v->work, &s->mem)) {
            cfg_reach_slot(v, &s->mem, at, &d);
            cfg_shape store;
            if (d.unknown || d.count != 1) return true; /* a load, of something */
            cfg_shape_of(v->work, &d.def[0].in, &store);
            if (store.sem != SEM_MOV || store.src.kind != ISA_OPERAND_REG) return true;
            reg = store.src.reg;
            at = d.def[0].at;
        } else if (s->src.kind == ISA_OPERAND_REG) {
            reg = s->src.reg;
        } else {
            return true;
        }
    }
    return false;
}

/* The load of an entry that is signed and of 4 bytes. */
static bool wide_load(cfg_view *v, cfg_def *d, cfg_shape *s)
{
    if (s->sem == SEM_CDQE) {
        if (!single_def(v, 0, d->at, d, s) || s->sem != SEM_MOV) return false;
    } else if (s->sem != SEM_MOVSX) {
        return false;
    }
    if (s->src.kind == ISA_OPERAND_REG) { /* mov table(..),%eax; movslq %eax,%rax */
        if (s->src.size != 4 || !single_def(v, s->src.reg, d->at, d, s) || s->sem != SEM_MOV) return false;
    }
    return s->mem.size == 4;
}

/* The load of an entry of any size, as it is extended by itself or where it is added to the base (`use`). */
static bool small_load(const cfg_shape *s, const isa_mem *use, form *f)
{
    bool is_signed = s->sem == SEM_MOVSX, whole = s->sem == SEM_MOV && s->mem.size == 4;
    if (!is_signed && s->sem != SEM_MOVZX && !whole) return false;
    if (use->index_low && use->index_low < s->mem.size) return false;
    if (use->index_low == s->mem.size) is_signed = use->index_signed;
    f->unsigned_entry = !is_signed;
    return s->mem.size <= 4;
}

/* Is the register's value an entry of a table, offset from what it is added to in `use`? */
static bool entry_load(cfg_view *v, unsigned reg, cfg_point at, const isa_mem *use, form *f)
{
    bool small = v->work->machine->small_tables;
    cfg_def d;
    cfg_shape s;
    if (!single_def(v, reg, at, &d, &s)) return false;
    f->unusual = !small && s.sem == SEM_MOVZX && s.src.kind == ISA_OPERAND_MEM;
    small |= f->unusual;
    const bool whole = !small && s.sem == SEM_MOV && s.has_mem && s.mem.size == 8;
    if (!whole && (small ? !small_load(&s, use, f) : !wide_load(v, &d, &s))) return false;
    if (!s.has_mem || s.src.kind != ISA_OPERAND_MEM || s.mem.segment) return false;
    f->entry_size = (uint8_t)s.mem.size;
    f->shift = (uint8_t)__builtin_ctz(use->scale);
    f->single = s.mem.bits & ISA_MEM_PCREL;
    f->named_at = f->read_at = d.in.addr;
    f->load = d.at;
    f->table = (uint64_t)s.mem.disp;
    return f->single || find_table(v, &s.mem, s.mem.size, d.at, f);
}

/* Entries count from the table itself: one that seems to begin a little before its base is read with an index that is
 * never that small. What stands there is another table's. */
static void begin_at_base(form *f)
{
    enum { furthest = 256 };
    uint64_t before = f->base - f->table;
    if (!f->displaced || before > furthest || before % f->entry_size) return;
    f->skipped = (uint32_t)(before / f->entry_size);
    f->table = f->base;
    f->displaced = false;
}

/* The base is named at `at`. */
static void name_base(form *f, uint64_t at)
{
    if (f->base != f->table || f->named_at == at) return;
    if (at && f->named_at) f->added_at = at;
    else f->named_at = 0;
}

/* The sum of a base and an entry; which is which shows, unless the entry is scaled or extended by the way. */
static form relative(cfg_view *v, const isa_mem *sum, cfg_point at)
{
    bool index_only = sum->scale > 1 || sum->index_low;
    for (int i = index_only; i < 2; i++) {
        form f = just(FORM_RELATIVE);
        cfg_constant c;
        unsigned entry = i ? sum->index : sum->base, base = i ? sum->base : sum->index;
        if (!cfg_constant_of(v, base, at, &c) || !entry_load(v, entry, at, sum, &f)) continue;
        f.base = c.value + (uint64_t)sum->disp;
        begin_at_base(&f);
        name_base(&f, c.named_at);
        if (sum->disp) f.named_at = 0;
        f.unusual |= sum->disp != 0;
        return f;
    }
    return just(FORM_COMPUTED);
}

/* What the index was multiplied by before: shl $5,%ecx; lea (%rcx,%rcx,2),%r8d. */
static void find_stride(cfg_view *v, unsigned reg, cfg_point at, uint64_t stride, form *f)
{
    enum { longest = 4 };
    cfg_def d;
    cfg_shape s;
    for (unsigned n = 0; n < longest && reg < 64 && single_def(v, reg, at, &d, &s) && s.dst.size >= 4; n++) {
        if (s.sem == SEM_SHL && s.has_src && s.src.kind == ISA_OPERAND_IMM) {
            stride <<= s.src.imm & 31;
            reg = s.dst.reg;
        } else if (s.sem == SEM_LEA && s.has_mem && s.mem.index != ISA_NO_REG && s.mem.disp == 0 &&
                   (s.mem.base == ISA_NO_REG || s.mem.base == s.mem.index)) {
            stride *= s.mem.scale + (s.mem.base == s.mem.index);
            reg = s.mem.index;
        } else {
            break;
        }
        at = d.at;
    }
    f->entry_size = (uint8_t)(stride < 256 ? stride : 0);
    f->index = (uint8_t)reg;
    f->load = at;
}

/* The sum of a place in the procedure and a multiple of the index. */
static form slots(cfg_view *v, const isa_mem *sum, cfg_point at)
{
    enum { smallest = 4 };
    for (int i = sum->scale > 1; i < 2 && !sum->index_low; i++) {
        form f = just(FORM_SLOTS);
        cfg_constant c;
        const unsigned reg = i ? sum->index : sum->base, base = i ? sum->base : sum->index;
        if (!cfg_constant_of(v, base, at, &c)) continue;
        f.table = f.base = c.value + (uint64_t)sum->disp;
        find_stride(v, reg, at, i ? sum->scale : 1, &f);
        if (f.entry_size >= smallest && cfg_inside(&v->work->procs.items[v->proc], f.table)) return f;
    }
    return just(FORM_COMPUTED);
}

static form sum_of(cfg_view *v, const isa_mem *sum, cfg_point at)
{
    const bool scaled = sum->scale > 1 && !v->work->machine->small_tables;
    form f = scaled ? just(FORM_COMPUTED) : relative(v, sum, at);
    return f.kind == FORM_COMPUTED ? slots(v, sum, at) : f;
}

/* add table(,%rdi,8),%rax: an entry of the table, with which the base becomes the target. */
static form added(cfg_view *v, const cfg_shape *s, const cfg_def *d)
{
    form f = just(FORM_RELATIVE);
    cfg_constant base;
    if (s->mem.segment || s->mem.index == ISA_NO_REG || !cfg_constant_of(v, s->dst.reg, d->at, &base) ||
        !find_table(v, &s->mem, s->mem.size, d->at, &f))
        return just(FORM_COMPUTED);
    f.entry_size = (uint8_t)s->mem.size;
    f.read_at = d->in.addr;
    f.base = base.value;
    begin_at_base(&f);
    if (f.base == f.table && f.named_at != base.named_at) f.named_at = 0;
    return f;
}

static bool is_zero(const cfg_shape *s)
{
    return s->src.kind == ISA_OPERAND_REG && s->dst.kind == ISA_OPERAND_REG && s->src.reg == s->dst.reg;
}

static form form_of_def(cfg_view *v, const cfg_def *d, const cfg_shape *s)
{
    switch (s->sem) {
    case SEM_MOV:
        if (s->src.kind == ISA_OPERAND_IMM) return just(FORM_POINTER);
        if (s->src.kind == ISA_OPERAND_MEM && s->dst.size == 8) return absolute(v, &s->mem, d->at);
        return just(FORM_COMPUTED);
    case SEM_LEA:
        if (s->has_mem && (s->mem.bits & ISA_MEM_PCREL || (s->mem.base == ISA_NO_REG && s->mem.index == ISA_NO_REG)))
            return just(FORM_POINTER);
        if (s->has_mem && s->mem.base != ISA_NO_REG && s->mem.index != ISA_NO_REG) return sum_of(v, &s->mem, d->at);
        return just(FORM_COMPUTED);
    case SEM_ADD:
        if (s->src.kind == ISA_OPERAND_REG && s->dst.size == 8) {
            isa_mem sum = {.base = s->dst.reg, .index = s->src.reg, .scale = 1};
            return sum_of(v, &sum, d->at);
        }
        return s->src.kind == ISA_OPERAND_MEM && s->dst.size == 8 ? added(v, s, d) : just(FORM_COMPUTED);
    case SEM_XOR: /* a pointer that was kept scrambled by a secret of the thread's; or none (xor %edx,%edx) */
        return just((s->has_mem && s->mem.segment) || is_zero(s) ? FORM_POINTER : FORM_COMPUTED);
    case SEM_SELECT:
    case SEM_POP: return just(FORM_POINTER);
    default: return just(FORM_COMPUTED);
    }
}

/* A label's address itself. */
static bool is_label(const cfg_view *v, const cfg_shape *s)
{
    const bool address = s->sem == SEM_LEA && s->has_mem && s->mem.bits & ISA_MEM_PCREL;
    return address && cfg_inside(&v->work->procs.items[v->proc], (uint64_t)s->mem.disp);
}

static bool same_entries(const form *a, const form *b)
{
    return a->table == b->table && a->base == b->base && a->entry_size == b->entry_size && a->shift == b->shift &&
           a->skipped == b->skipped && a->unsigned_entry == b->unsigned_entry && a->single == b->single;
}

/* goto *(c <= 'z' ? base + table[c] : &&none): entries of one table, read in one place or several, and labels. */
static form table_or_labels(cfg_view *v, const cfg_defs *d)
{
    form f = just(FORM_COMPUTED);
    for (unsigned i = 0; i < d->count; i++) {
        cfg_shape s;
        cfg_shape_of(v->work, &d->def[i].in, &s);
        if (is_label(v, &s)) continue;
        form one = form_of_def(v, &d->def[i], &s);
        if (one.kind != FORM_RELATIVE) return just(FORM_COMPUTED);
        if (f.kind == FORM_RELATIVE && !same_entries(&f, &one)) return just(FORM_COMPUTED);
        if (f.kind == FORM_RELATIVE) one.index = ISA_NO_REG, one.named_at = one.read_at = 0;
        f = one;
    }
    f.or_label = true;
    return d->unknown ? just(FORM_COMPUTED) : f;
}

/* Several values may arrive: from one table in several places, or plain pointers. */
static form form_of_several(cfg_view *v, const cfg_defs *d)
{
    form f = just(FORM_POINTER);
    unsigned tables = 0;
    for (unsigned i = 0; i < d->count; i++) {
        cfg_shape s;
        cfg_shape_of(v->work, &d->def[i].in, &s);
        bool call = d->def[i].in.flow == ISA_FLOW_CALL || d->def[i].in.flow == ISA_FLOW_CALL_IND;
        if (call || (s.sem == SEM_MOV && s.src.kind == ISA_OPERAND_REG)) continue;
        form one = form_of_def(v, &d->def[i], &s);
        if (one.kind == FORM_RELATIVE) return table_or_labels(v, d);
        if (one.kind == FORM_COMPUTED) return just(FORM_COMPUTED);
        if (one.kind == FORM_ABSOLUTE && (tables == 0 || one.table == f.table)) {
            f.each_names = (tables == 0 || f.each_names) && one.named_at && one.named_at == one.read_at;
            f.table = one.table;
            tables++;
        }
        if (one.kind != FORM_POINTER) f.kind = FORM_LOADED;
    }
    if (tables == 0 || tables < d->count || d->unknown) return f;
    f.kind = FORM_ABSOLUTE;
    f.base = f.table;
    return f;
}

/* A register that is stored to a slot, and nothing else is: what the slot holds. */
static bool stored_register(cfg_view *v, const isa_mem *slot, cfg_point at, unsigned *reg, cfg_point *stored)
{
    cfg_defs d;
    cfg_shape s;
    if (slot->size != 8 || !cfg_is_slot(v->work, slot)) return false;
    cfg_reach_slot(v, slot, at, &d);
    if (d.unknown || d.count != 1) return false;
    cfg_shape_of(v->work, &d.def[0].in, &s);
    if (s.sem != SEM_MOV || s.src.kind != ISA_OPERAND_REG) return false;
    *reg = s.src.reg;
    *stored = d.def[0].at;
    return true;
}

static form form_of_register(cfg_view *v, unsigned reg, cfg_point at)
{
    cfg_def d;
    cfg_shape value;
    if (single_def(v, reg, at, &d, &value)) {
        if (d.in.flow == ISA_FLOW_CALL || d.in.flow == ISA_FLOW_CALL_IND) return just(FORM_POINTER);
        return form_of_def(v, &d, &value);
    }
    cfg_defs all;
    cfg_reach(v, reg, at, &all);
    return form_of_several(v, &all);
}

/* pop %reg */
static bool takes_from_top(const cfg_work *w, const isa_insn *in, const isa_operand *target)
{
    return target->kind == ISA_OPERAND_REG && target->reg < 64 && w->sems[in->op] == SEM_POP &&
           cfg_insn_writes(w, in) & 1ull << target->reg;
}

/* What the jump at the block's end leads to, as the operand `dst` there or where it was stored. */
static bool jump_value(cfg_view *v, uint32_t block, cfg_shape *s, cfg_point *at, form *f)
{
    uint32_t count;
    cfg_leap leap;
    const isa_insn *in = cfg_view_insns(v, block, &count);
    if (count == 0) return false;
    *at = (cfg_point){block, count - 1};
    if (in[count - 1].flow == ISA_FLOW_JUMP_IND) {
        cfg_shape_of(v->work, &in[count - 1], s);
        f->popped = count > 1 && takes_from_top(v->work, &in[count - 2], &s->dst);
        return true;
    }
    const isa_insn *before = count > 1 ? &in[count - 2] : NULL;
    if (cfg_leaps(v->work, &in[count - 1], before, &leap) != CFG_LEAPS) return false;
    *s = (cfg_shape){.dst = leap.value, .mem = leap.mem};
    at->index -= leap.before;
    f->leaps = true;
    f->pushed = leap.pushed;
    f->returns = in[count - 1].flow == ISA_FLOW_RETURN;
    return true;
}

static form form_of_value(cfg_view *v, const cfg_shape *s, cfg_point at)
{
    unsigned reg = s->dst.reg;
    if (s->dst.kind == ISA_OPERAND_IMM) return just(FORM_POINTER);
    if (s->dst.kind == ISA_OPERAND_MEM) {
        if (!stored_register(v, &s->mem, at, &reg, &at)) return absolute(v, &s->mem, at);
    } else if (s->dst.kind != ISA_OPERAND_REG) {
        return just(FORM_COMPUTED);
    }
    form f = form_of_register(v, reg, at);
    if (f.kind == FORM_COMPUTED && cfg_is_exact(v, reg, at)) f.kind = FORM_POINTER;
    bool tail = s->dst.kind == ISA_OPERAND_REG && v->work->machine->tail_regs >> s->dst.reg & 1;
    if (f.kind == FORM_COMPUTED && tail) f.kind = FORM_POINTER;
    return f;
}

static form form_of(cfg_view *v, uint32_t block)
{
    form how = just(FORM_COMPUTED);
    cfg_shape s;
    cfg_point at;
    if (!jump_value(v, block, &s, &at, &how)) return how;
    form f = form_of_value(v, &s, at);
    f.leaps = how.leaps;
    f.pushed = how.pushed;
    f.returns = how.returns;
    f.popped = how.popped;
    return f;
}

/* --- resolving --- */

/* A few instructions that a procedure calls among its own: jmp 2f; 1: `jump`; 2: call 1b. */
static bool is_only_called(const cfg_view *v, uint32_t block)
{
    const cfg_view_block *b = &v->blocks.items[block];
    return b->pred_count == 0 && *cfg_mark(v->work, b->addr) & MARK_ROOT;
}

static bool leaves_here(cfg_view *v, uint32_t block, const form *f)
{
    int64_t height;
    if (f->returns || (f->leaps && is_only_called(v, block))) return true;
    if (!cfg_stack_height(v, block, &height)) return f->popped;
    return height == 0 || (f->pushed && height == -8) || (f->popped && height == v->work->machine->pushed);
}

static void settle_pointer(cfg_view *v, cfg_indirect *i, uint32_t block, const form *f, form_kind kind)
{
    const cfg_draft *p = &v->work->procs.items[v->proc];
    bool leaves = kind != FORM_COMPUTED && leaves_here(v, block, f);
    i->table = CFG_NONE;
    if (p->flags & CFG_PROC_PLT) {
        i->way = WAY_TAIL; /* for the imported procedure, or for the dynamic linker to find it */
    } else if (p->taken_inside && kind != FORM_COMPUTED) {
        i->way = WAY_GOTO;
        i->leaves = true; /* nothing says that it does not */
    } else {
        i->way = leaves || cfg_restores(v, block) ? WAY_TAIL : WAY_UNKNOWN;
    }
}

/* `jmp *table-32(,%rax,8)`, or `lea table-16(%rip),%rdx; movslq (%rdx,%rcx,4),%rcx`, where 4 may be the least that the
 * index is: what stands before the first entry that leads into the procedure is another's then. */
static void begin_inside(const cfg_view *v, form *f)
{
    const bool relative = f->kind == FORM_RELATIVE;
    if (f->displaced || f->single || !(relative || f->kind == FORM_ABSOLUTE)) return;
    const cfg_table t = {.table = f->table,
                         .base = f->base,
                         .kind = relative ? CFG_TABLE_RELATIVE : CFG_TABLE_ABSOLUTE,
                         .entry_size = relative ? f->entry_size : 8,
                         .shift = f->shift,
                         .unsigned_entry = f->unsigned_entry,
                         .relocated = !relative && image_reloc_at(v->work->image, f->table) != NULL};
    bool own = true;
    f->skipped = relative ? cfg_first_code(v, &t) : cfg_first_inside(v, &t, &own);
    f->displaced = !own;
    if (f->skipped == CFG_NONE) f->skipped = 0;
    if (f->skipped == 0) return;
    f->table += (uint64_t)t.entry_size * f->skipped;
    f->named_at = 0;
}

/* Code that no unwind table describes, in an image where some is described, and that counts by a number of bits or
 * reads its table as no compiler does, was written by hand. There tables' names are not their begins (what is never
 * asked for is left out), and so not the ends of other tables either. */
static bool is_by_hand(cfg_view *v, const form *f)
{
    const image_unwind_range *ranges;
    image *im = v->work->image;
    cfg_def d;
    cfg_shape s;
    if (!image_unwind_ranges(im, &ranges) || image_unwind_at(im, v->work->procs.items[v->proc].addr)) return false;
    return f->unusual || (f->index < 64 && single_def(v, f->index, f->load, &d, &s) && s.sem == SEM_SCAN);
}

/* A procedure returns when a piece does that its table leads to. */
static void wait_for_entries(cfg_view *v, const cfg_table *t)
{
    bool ok;
    for (uint32_t i = 0; i < t->count; i++) {
        const uint64_t target = cfg_read_target(v->work->image, t, i, &ok);
        if (ok && cfg_mark(v->work, target)) cfg_wait_for_piece(v->work, t->jump, target);
    }
}

static void keep_table(cfg_view *v, cfg_indirect *i, const cfg_table *t, bool may_be_label)
{
    cfg_work *w = v->work;
    uint32_t number = i->spare;
    if (number == CFG_NONE) {
        number = (uint32_t)w->tables.count;
        cfg_keep(w, &w->tables, *t);
    }
    if (w->failed) return;
    w->tables.items[number] = *t;
    wait_for_entries(v, t);
    i->spare = i->table = number;
    i->way = may_be_label && w->procs.items[v->proc].taken_inside ? WAY_GOTO : WAY_TABLE;
    i->leaves = false;
}

/* The index may be compared once the sum is made: cmp $18,%ecx; lea (%r10,%rcx,8),%r10; ja none; jmp *%r10. */
static cfg_limit bound_of_slots(cfg_view *v, uint32_t block, const form *f)
{
    const cfg_view_block *b = &v->blocks.items[block];
    const cfg_limit limit = cfg_bound(v, f->index, 4, f->load);
    cfg_defs there, here;
    if (limit.kind == CFG_LIMIT_COMPARED || b->pred_count != 1) return limit;
    if (v->edges.items[v->preds.items[b->first_pred]].from != f->load.block) return limit;
    cfg_reach(v, f->index, f->load, &there);
    cfg_reach(v, f->index, (cfg_point){block, 0}, &here);
    if (there.unknown || here.unknown || there.count != 1 || here.count != 1) return limit;
    const cfg_point a = there.def[0].at, z = here.def[0].at;
    if (a.block != z.block || a.index != z.index || (a.block == f->load.block && a.index >= f->load.index))
        return limit;
    const cfg_limit later = cfg_bound(v, f->index, 4, (cfg_point){block, 0});
    return later.kind == CFG_LIMIT_NONE ? limit : later;
}

/* Only a bound says how many there are, be it by a mask. False: not yet. */
static bool settle_slots(cfg_view *v, cfg_indirect *i, uint32_t block, const form *f, bool open_ended)
{
    cfg_table t = {
        .jump = i->site, .table = f->table, .base = f->table, .kind = CFG_TABLE_CODE, .entry_size = f->entry_size};
    cfg_limit limit = bound_of_slots(v, block, f);
    if (limit.kind == CFG_LIMIT_NONE && !open_ended && i->way == WAY_NEW) return false;
    const bool bound = limit.kind != CFG_LIMIT_NONE;
    const uint64_t last = t.table + (limit.count - 1) * t.entry_size;
    limit.kind = CFG_LIMIT_COMPARED;
    if (bound && cfg_inside(&v->work->procs.items[v->proc], last) && cfg_read_table(v, &t, limit) && t.exact)
        keep_table(v, i, &t, false);
    else settle_pointer(v, i, block, f, FORM_COMPUTED);
    return true;
}

/* False: not yet. */
static bool settle_table(cfg_view *v, cfg_indirect *i, uint32_t block, const form *f, bool open_ended)
{
    cfg_work *w = v->work;
    bool relative = f->kind == FORM_RELATIVE;
    cfg_table t = {.jump = i->site,
                   .table = f->table,
                   .base = relative ? f->base : f->table,
                   .named_at = f->named_at,
                   .added_at = f->named_at ? f->added_at : 0,
                   .read_at = f->read_at,
                   .each_names = f->kind == FORM_ABSOLUTE && f->each_names && !f->named_at && !f->skipped,
                   .kind = relative ? CFG_TABLE_RELATIVE : CFG_TABLE_ABSOLUTE,
                   .entry_size = relative ? f->entry_size : 8,
                   .shift = f->shift,
                   .unsigned_entry = f->unsigned_entry};
    cfg_limit limit = f->single ? (cfg_limit){1, CFG_LIMIT_COMPARED} : (cfg_limit){0};
    if (f->index < 64) limit = cfg_bound(v, f->index, 4, f->load);
    if (limit.kind != CFG_LIMIT_NONE && f->skipped) {
        if (limit.count > f->skipped) limit.count -= f->skipped;
        else limit = (cfg_limit){0};
    }
    const bool by_hand = is_by_hand(v, f);
    if (!by_hand) limit = cfg_limit_of_table(w, &t, limit);
    if (limit.kind != CFG_LIMIT_COMPARED && !open_ended && i->way == WAY_NEW) return false;
    const bool taken_inside = w->procs.items[v->proc].taken_inside, no_label_yet = f->or_label && !taken_inside;
    if (no_label_yet && !open_ended && i->way == WAY_NEW) return false;
    bool known = !(by_hand && limit.kind == CFG_LIMIT_NONE) && !no_label_yet && cfg_read_table(v, &t, limit);
    if (!known || (by_hand && t.count < limit.count)) {
        bool pointers = !relative && cfg_may_be_pointers(v, &t);
        settle_pointer(v, i, block, f, pointers ? FORM_LOADED : FORM_COMPUTED);
        return true;
    }
    keep_table(v, i, &t, f->or_label || (!relative && !t.exact));
    return true;
}

static bool settle(cfg_view *v, cfg_indirect *i, uint32_t block, form *f, bool open_ended)
{
    switch (f->kind) {
    case FORM_RELATIVE:
    case FORM_ABSOLUTE:
        begin_inside(v, f);
        cfg_name_data(v->work, f->table, !f->single && !f->displaced);
        return settle_table(v, i, block, f, open_ended);
    case FORM_SLOTS: return settle_slots(v, i, block, f, open_ended);
    default: settle_pointer(v, i, block, f, f->kind); return true;
    }
}

static void resolve_proc(cfg_view *v, cfg_work *w, uint32_t proc, bool open_ended)
{
    cfg_view_make(v, w, proc, true);
    for (uint32_t b = 0; b < v->blocks.count && !w->failed; b++) {
        cfg_indirect *i = v->blocks.items[b].indirect ? cfg_indirect_at(w, v->blocks.items[b].last) : NULL;
        if (!i) continue;
        cfg_indirect now = *i; /* more of them are found while tables are read */
        form f = form_of(v, b);
        if (!settle(v, &now, b, &f, open_ended)) {
            w->procs.items[proc].put_off = true;
            continue;
        }
        if ((i = cfg_indirect_at(w, now.site))) *i = now;
        if (now.way != WAY_TABLE) cfg_returns(w, proc);
    }
}

bool cfg_resolve(cfg_work *w, bool open_ended)
{
    cfg_view v = {0};
    for (uint32_t i = 0; i < w->procs.count && !w->failed; i++) {
        cfg_draft *p = &w->procs.items[i];
        if (!(p->dirty && p->jumps) && !(open_ended && p->put_off)) continue;
        p->dirty = false;
        if (open_ended) p->put_off = false;
        resolve_proc(&v, w, i, open_ended);
    }
    cfg_view_free(&v);
    bool more = w->todo.count || w->fresh.count;
    for (size_t i = 0; i < w->procs.count && !more; i++) more = w->procs.items[i].dirty && w->procs.items[i].jumps;
    return more;
}
