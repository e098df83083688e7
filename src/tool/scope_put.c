/* Has a procedure stored its parameter? Where code is not optimised debug information has one place for all of the
 * procedure, a word of its frame, in which there is something else until the instruction that puts it there. That is
 * looked for, from the first instruction on; where none is found, the lines tell where the beginning is over. */
#include "tool/scope.h"
#include "image/file.h"

typedef struct search {
    image *file;
    const image_processor *set;
    uint64_t at;
    int64_t low, high; /* the place's first and last byte, from where the frame begins */
    bool has_low, has_high;
} search;

/* So far from the frame's beginning; false: nothing tells. */
static bool from_frame(const search *s, uint64_t at, unsigned reg, int64_t offset, int64_t *out)
{
    unsigned number;
    int64_t up;
    if (!image_frame_told(s->file, at, &number, &up) || number >= s->set->register_count) return false;
    *out = offset - up;
    return s->set->registers[number] == reg;
}

static void look(search *s, const isa_insn *in)
{
    isa_mem mem[ISA_MAX_MEM];
    int64_t from;
    for (int n = tool_isa()->memory(in, mem), k = 0; k < n; k++) {
        bool plain = mem[k].access & ISA_WRITE && mem[k].index == ISA_NO_REG && !mem[k].segment && !mem[k].mask;
        if (!plain || !from_frame(s, s->at, mem[k].base, mem[k].disp, &from)) continue;
        int64_t behind = from + (int64_t)mem[k].size * mem[k].count;
        s->has_low |= from <= s->low && s->low < behind;
        s->has_high |= from <= s->high && s->high < behind;
    }
}

static bool is_found(search *s, uint64_t end)
{
    enum { MOST = 4096 };
    const isa *set = tool_isa();
    const uint8_t *bytes;
    isa_insn in;
    if (end - s->at > MOST) end = s->at + MOST;
    while (s->at < end && !(s->has_low && s->has_high)) {
        size_t n = image_bytes(s->file, s->at, &bytes);
        if (!n || set->decode(bytes, n < set->max_insn ? n : set->max_insn, s->at, &in) != ISA_OK) break;
        look(s, &in);
        s->at += in.len;
    }
    return s->has_low && s->has_high;
}

/* Has something been put to so many bytes, so far from a register? */
static bool word_is_put(const inlay_scope *scope, image *file, const image_variable *v, unsigned reg, int64_t offset,
                        uint64_t size)
{
    search s = {.file = file, .set = image_processor_of(file), .at = v->entry};
    if (!s.set || !v->entry || !size) return false;
    if (!from_frame(&s, scope->address, reg, offset, &s.low)) s.low = INT64_MIN;
    else if (s.low >= 0) return true; /* where its caller has put it */
    s.high = s.low + (int64_t)size - 1;
    if (s.low != INT64_MIN && scope->address > v->entry && is_found(&s, scope->address)) return true;
    uint64_t begun = image_begun(file, v->entry);
    return begun && (scope->address >= begun || scope->address < v->entry);
}

bool scope_is_put(const inlay_scope *scope, image *file, const image_variable *v)
{
    enum { WORD = 8 };
    if (v->kind == IMAGE_PLACE_RELATIVE) return word_is_put(scope, file, v, v->reg, v->offset, v->type->size);
    bool steps = v->kind == IMAGE_PLACE_MEMORY || v->kind == IMAGE_PLACE_COMPUTED;
    for (unsigned i = 0; steps && i + 1 < v->count; i++) {
        const image_step *p = &v->steps[i];
        if (p->kind == STEP_REGISTER && p[1].kind == STEP_LOAD && !word_is_put(scope, file, v, p->reg, p->value, WORD))
            return false;
    }
    return true;
}
