/* A static program has its unwinder and what that asks in itself. Where their names are gone, what is asked is told
 * from the code that asks it:
 *
 *     lea S(stack),%rsi ; call _dl_find_object ; ... ; mov S+32(stack),R
 *         in what looks at the encodings of an unwind table's header (cmpb $0x3b,3(R))
 *     lea callback,%rdi ; call dl_iterate_phdr
 *         where the callback compares with PT_GNU_EH_FRAME
 *
 * All code that the unwind table describes is looked at once. What two places tell differently is not known. */
#include "tool/finders.h"

#include <elf.h>

enum {
    UNWIND_AT = 32,  /* of the table in what _dl_find_object fills in */
    ENCODING_AT = 3, /* in the header of an unwind table: of its search table, */
    ENCODING = 0x3b, /* which is of four bytes, signed, relative to the header */
    ARGUMENTS = 8,   /* instructions in front of a call that may hand over where the table is wanted, */
    RESULTS = 14,    /* and behind it that may look at what came */
};

typedef struct call { /* what is handed over, and who is called */
    uint64_t argument, to;
} call;

typedef struct search {
    image *im;
    const isa *isa;
    INL_VEC(isa_insn) insns;     /* of one range */
    INL_VEC(uint64_t) callbacks; /* ranges that compare with PT_GNU_EH_FRAME */
    INL_VEC(call) calls;         /* with addresses of the image's code */
    uint64_t object;
    bool disputed;
} search;

static void decode(search *s, const image_unwind_range *r)
{
    const uint8_t *bytes;
    size_t have = image_bytes(s->im, r->addr, &bytes);
    if (have > r->size) have = r->size;
    s->insns.count = 0;
    for (size_t at = 0; at < have;) {
        isa_insn in;
        isa_result result = s->isa->decode(bytes + at, have - at, r->addr + at, &in);
        if ((result != ISA_OK && result != ISA_UNKNOWN) || !inl_vec_push(&s->insns, in)) return;
        at += in.len;
    }
}

/* The memory that it reads or whose address it computes: a base and a distance. */
static bool is_at(const search *s, const isa_insn *in, bool address_only, isa_mem *out)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = s->isa->memory(in, mem);
    for (int i = 0; i < n; i++) {
        bool fits = address_only ? mem[i].access == ISA_ADDRESS_ONLY : (mem[i].access & ISA_READ) != 0;
        if (!fits || mem[i].index != ISA_NO_REG || mem[i].segment) continue;
        *out = mem[i];
        return true;
    }
    return false;
}

static bool has_number(const search *s, const isa_insn *in, uint64_t number)
{
    isa_operand o[ISA_MAX_OPERANDS];
    int n = s->isa->operands(in, o);
    for (int i = 0; i < n; i++)
        if (o[i].kind == ISA_OPERAND_IMM && (uint32_t)o[i].imm == number) return true;
    return false;
}

static bool looks_at_encoding(const search *s)
{
    isa_mem m;
    for (size_t i = 0; i < s->insns.count; i++)
        if (has_number(s, &s->insns.items[i], ENCODING) && is_at(s, &s->insns.items[i], false, &m) &&
            m.disp == ENCODING_AT && m.size == 1)
            return true;
    return false;
}

/* Is what the call was given room for looked at behind it, where the table's address is? */
static bool is_looked_at(const search *s, size_t from, const isa_mem *room)
{
    for (size_t i = from; i < s->insns.count && i < from + RESULTS; i++) {
        isa_mem m;
        if (is_at(s, &s->insns.items[i], false, &m) && m.base == room->base && m.size == sizeof(uint64_t) &&
            m.disp == room->disp + UNWIND_AT)
            return true;
    }
    return false;
}

/* What follows it may be executed next. */
static bool comes_here(const isa_insn *in) { return in->flow == ISA_FLOW_NEXT || in->flow == ISA_FLOW_COND; }

static void find_object(search *s)
{
    if (!looks_at_encoding(s)) return;
    for (size_t i = 0; i < s->insns.count; i++) {
        const isa_insn *in = &s->insns.items[i];
        if (in->flow != ISA_FLOW_CALL) continue;
        for (size_t k = i; k-- > 0 && i - k <= ARGUMENTS && comes_here(&s->insns.items[k]);) {
            isa_mem m;
            if (!is_at(s, &s->insns.items[k], true, &m) || m.base == ISA_NO_REG || !is_looked_at(s, i + 1, &m))
                continue;
            s->disputed |= s->object && s->object != in->target;
            s->object = in->target;
        }
    }
}

/* The address that an instruction names, if it is one of code that the unwind table knows. */
static uint64_t named_code(const search *s, const isa_insn *in)
{
    isa_operand o[ISA_MAX_OPERANDS];
    if (in->flow != ISA_FLOW_NEXT) return 0;
    uint64_t found = in->bits & ISA_BIT_PCREL_MEM ? in->target : 0;
    int n = found ? 0 : s->isa->operands(in, o);
    for (int i = 0; i < n; i++)
        if (o[i].kind == ISA_OPERAND_IMM && o[i].imm > 0) found = (uint64_t)o[i].imm;
    const image_unwind_range *r = found ? image_unwind_at(s->im, found) : NULL;
    return r && r->addr == found ? found : 0;
}

/* Compilers set a call's arguments up between what else they do: any of a straight run's instructions may be in front.
 */
static void note_calls(search *s, uint64_t range)
{
    uint64_t named = 0;
    bool compares = false;
    for (size_t i = 0; i < s->insns.count; i++) {
        const isa_insn *in = &s->insns.items[i];
        uint64_t found = named_code(s, in);
        compares |= has_number(s, in, PT_GNU_EH_FRAME);
        if (found) named = found;
        if (named && in->flow == ISA_FLOW_CALL && !inl_vec_push(&s->calls, ((call){named, in->target})))
            s->disputed = true;
        if (in->flow != ISA_FLOW_NEXT) named = 0;
    }
    if (compares && !inl_vec_push(&s->callbacks, range)) s->disputed = true;
}

static bool is_callback(const search *s, uint64_t at)
{
    for (size_t i = 0; i < s->callbacks.count; i++)
        if (s->callbacks.items[i] == at) return true;
    return false;
}

/* Whom callbacks are handed to. */
static uint64_t list_of(const search *s)
{
    uint64_t found = 0;
    for (size_t i = 0; i < s->calls.count; i++) {
        const call *c = &s->calls.items[i];
        if (!is_callback(s, c->argument)) continue;
        if (found && found != c->to) return 0;
        found = c->to;
    }
    return found;
}

finders_unnamed finders_find_unnamed(image *im)
{
    const image_unwind_range *ranges;
    search s = {.im = im, .isa = isa_for_machine(image_machine(im))};
    size_t n = s.isa ? image_unwind_ranges(im, &ranges) : 0;
    for (size_t i = 0; i < n && !s.disputed; i++) {
        decode(&s, &ranges[i]);
        find_object(&s);
        note_calls(&s, ranges[i].addr);
    }
    finders_unnamed found = {.of = im};
    if (!s.disputed) found.object = s.object;
    if (!s.disputed && !s.object) found.list = list_of(&s);
    inl_vec_free(&s.insns);
    inl_vec_free(&s.callbacks);
    inl_vec_free(&s.calls);
    return found;
}
