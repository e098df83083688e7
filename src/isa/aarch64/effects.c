/* What an instruction reads and writes: what its row has besides operands, then slot by slot. */
#include "isa/aarch64/tables.h"

uint32_t a64_cond_flags(unsigned cond)
{
    static const uint32_t flags[8] = {A64_Z, A64_C, A64_N, A64_V, A64_C | A64_Z, A64_N | A64_V, A64_N | A64_Z | A64_V,
                                      0};
    return flags[cond >> 1 & 7];
}

unsigned a64_cond_at(const a64_row *row)
{
    for (unsigned i = 0; i < row->slot_count; i++)
        if (a64_slots[row->slots + i].kind == A64_SLOT_COND) return a64_slots[row->slots + i].at;
    return 0;
}

enum { ALL_OTHER = ISA_OTHER_FP_STATUS | ISA_OTHER_TLS_BASE | ISA_OTHER_ALL_VEC | ISA_OTHER_SYSTEM };

static void everything(isa_effects *e)
{
    *e = (isa_effects){.reads = ~0ull >> 32, .writes = ~0ull >> 32};
    e->vec_reads = e->vec_writes = ~0u;
    e->mask_reads = e->mask_writes = 0xff;
    e->other_reads = e->other_writes = ALL_OTHER;
    e->flags_read = e->flags_written = A64_NZCV;
}

static void add_general(const a64_slot *s, uint32_t word, isa_effects *e)
{
    unsigned number = a64_field(word, s->at, s->width);
    unsigned count = s->kind == A64_SLOT_REG && s->count > 1 ? s->count : 1;
    for (unsigned i = 0; i < count; i++) {
        unsigned n = number + i;
        if (n >= 31 && s->kind != A64_SLOT_REG_SP) continue; /* the zero register */
        uint64_t one = 1ull << (n & 31);
        if (s->access & ISA_READ) e->reads |= one;
        if (s->access & ISA_WRITE) e->writes |= one;
        if (s->access == ISA_WRITE) e->kills |= one;
    }
}

static void add_vectors(const a64_slot *s, uint32_t word, isa_effects *e)
{
    unsigned number = a64_field(word, s->at, s->width);
    for (unsigned i = 0; i < s->count; i++) {
        uint32_t one = 1u << ((number + i) & 31);
        if (s->access & ISA_READ) e->vec_reads |= one;
        if (s->access & ISA_WRITE) e->vec_writes |= one;
        if (s->access == ISA_WRITE) e->vec_kills |= one;
    }
}

static void add_address(const a64_slot *s, uint32_t word, isa_effects *e)
{
    if (s->at == A64_MEM_LIT || s->at == A64_MEM_ADR) return;
    unsigned base = a64_field(word, s->at == A64_MEM_T ? 0 : 5, 5), index = a64_field(word, 16, 5);
    if (s->at == A64_MEM_T && base == 31) return;
    e->reads |= 1ull << base;
    if ((s->at == A64_MEM_R || s->at == A64_MEM_VPOST) && index != 31) e->reads |= 1ull << index;
    if (a64_is_post(s->at) || a64_is_pre(s->at)) {
        e->writes |= 1ull << base;
        e->kills |= 1ull << base;
    }
}

/* Control leaves to where everything may be looked at; a system call comes back with its answer. */
static void add_exits(unsigned flow, isa_effects *e)
{
    if (flow != ISA_FLOW_SYSCALL && flow != ISA_FLOW_TRAP && flow != ISA_FLOW_FAR) return;
    e->reads |= ~0ull >> 32;
    e->flags_read = A64_NZCV;
    e->other_reads |= ALL_OTHER;
    if (flow == ISA_FLOW_SYSCALL) e->writes |= 1;
}

void a64_effects(const isa_insn *in, isa_effects *e)
{
    const a64_row *r = a64_row_of(in);
    uint32_t word = a64_word(in);
    if (in->bits & ISA_BIT_UNKNOWN) {
        everything(e);
        return;
    }
    *e = (isa_effects){.reads = r->reads,
                       .writes = r->writes,
                       .kills = r->writes & ~r->reads,
                       .other_reads = r->other_reads,
                       .other_writes = r->other_writes,
                       .flags_read = (uint32_t)r->flags_read << 28,
                       .flags_written = (uint32_t)r->flags_written << 28,
                       .flags_kill = (uint32_t)r->flags_kill << 28};
    if (r->cond) e->flags_read |= a64_cond_flags(a64_field(word, a64_cond_at(r), 4));
    for (unsigned i = 0; i < r->slot_count; i++) {
        const a64_slot *s = &a64_slots[r->slots + i];
        if (s->kind <= A64_SLOT_REG_EXTENDED) add_general(s, word, e);
        else if (s->kind == A64_SLOT_VEC || s->kind == A64_SLOT_VEC_ELEMENT) add_vectors(s, word, e);
        else if (s->kind == A64_SLOT_MEM) add_address(s, word, e);
    }
    add_exits(in->flow, e);
}
