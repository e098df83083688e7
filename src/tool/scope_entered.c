/* What a procedure was called with, as snippets, at places where the calling convention does not tell it any more: by
 * what is kept from its entry (entered.h).
 *
 * The frame by which that is found is the stack pointer as it was at the entry: at ways out it has that value again,
 * elsewhere the unwind table says how far it is from a register. */
#include "tool/entered.h"
#include "tool/passing.h"
#include "tool/scope.h"
#include "image/file.h"

#include <inlay/process.h>

#include <string.h>

enum { WORD = 8, MOST_WORDS = 16 };

static const image_ctype *word_type(void) { return image_ctype_int(WORD, false); }

static const snippet *register_value(snippet_maker *m, unsigned reg)
{
    return typed_value(m, scope_register(m, word_type(), reg));
}

static const snippet *frame_of(inlay_scope *s, image *file)
{
    const image_processor *set = image_processor_of(file);
    unsigned number;
    int64_t up;
    if (s->at_exit) return register_value(&s->maker, tool_isa()->stack_reg);
    if (!set || !image_frame_told(file, s->address, &number, &up) || number >= set->register_count)
        return typed_refuse(&s->maker, "what its procedure was called with is not kept for here: the unwind table does "
                                       "not say where its frame is");
    return typed_word(&s->maker, SNIPPET_ADD, register_value(&s->maker, set->registers[number]),
                      (uint64_t)up - tool_stack_arguments);
}

const snippet *scope_entered(inlay_scope *s, uint64_t entry, const snippet *value)
{
    image *file = tool_image_file(s->image);
    inlay_proc *of = inlay_process_proc_at(s->image->process, entry + s->image->bias);
    if (!file || !value) return NULL;
    if (!of || of->low != entry + s->image->bias)
        return typed_refuse(&s->maker,
                            "what its procedure was called with is not kept: where that begins is not known");
    return tool_entered_value(&s->maker, s->given, of, value, frame_of(s, file));
}

static bool own_entry(const inlay_scope *s, uint64_t *entry)
{
    image *file = s->image && !s->whole ? tool_image_file(s->image) : NULL;
    const image_proc *p = file ? image_proc_at(file, s->address) : NULL;
    if (p) *entry = p->addr;
    return p;
}

/* --- arguments by number --- */

static bool is_call(const inlay_scope *s)
{
    const uint8_t *bytes;
    isa_insn in;
    image *file = tool_image_file(s->image);
    size_t n = file ? image_bytes(file, s->address, &bytes) : 0, most = tool_isa()->max_insn;
    if (!n || tool_isa()->decode(bytes, n < most ? n : most, s->address, &in) != ISA_OK) return false;
    return in.flow == ISA_FLOW_CALL || in.flow == ISA_FLOW_CALL_IND;
}

const snippet *scope_argument(inlay_scope *s, const snippet *argument)
{
    uint64_t entry;
    if (s->whole || !argument || (!s->at_exit && is_call(s))) return argument;
    if (!own_entry(s, &entry))
        return typed_refuse(&s->maker, "it belongs to no procedure that is known, nor to a call; registers are there");
    if (entry == s->address && !s->at_exit) return argument;
    const snippet *kept = scope_entered(s, entry, argument);
    return kept ? typed_as(&s->maker, image_ctype_int(WORD, true), kept) : NULL;
}

/* --- parameters --- */

static const snippet *kept_pieces(inlay_scope *s, const snippet *v)
{
    const snippet *pieces[MOST_WORDS];
    if (v->nargs > MOST_WORDS || v->value) return typed_refuse(&s->maker, "it is in too many pieces");
    for (unsigned i = 0; i < v->nargs; i++) {
        pieces[i] = v->args[i] ? scope_entered(s, s->address, v->args[i]) : NULL;
        if (s->maker.why[0]) return NULL;
    }
    return typed_in_pieces(&s->maker, v->type, v->nargs, pieces, v->arg_sizes);
}

/* So far from the stack pointer. */
static bool is_on_stack(const snippet *at)
{
    while (at->kind == SNIPPET_BINARY && at->op == SNIPPET_ADD && at->b->kind == SNIPPET_CONST) at = at->a;
    return at->kind == SNIPPET_REG && at->reg == tool_isa()->stack_reg;
}

/* An object where it was passed, which is the procedure's to change. */
static const snippet *kept_words(inlay_scope *s, const snippet *object)
{
    const snippet *words[MOST_WORDS];
    uint8_t sizes[MOST_WORDS];
    unsigned n = 0;
    uint64_t size = object->type->size;
    if (size > MOST_WORDS * WORD)
        return typed_refuse(&s->maker,
                            "it was passed on the stack, and the procedure may have changed it: of what is "
                            "passed so %d bytes at most are kept",
                            MOST_WORDS * WORD);
    for (uint64_t at = 0; at < size; at += WORD, n++) {
        sizes[n] = (uint8_t)(size - at < WORD ? size - at : WORD);
        words[n] = scope_entered(s, s->address, typed_bytes(&s->maker, object, at, sizes[n]));
        if (!words[n]) return NULL;
    }
    return n ? typed_in_pieces(&s->maker, object->type, n, words, sizes) : object;
}

const snippet *scope_kept_parameter(inlay_scope *s, const snippet *v)
{
    if (!v) return NULL;
    if (v->role == TYPED_PIECES) return kept_pieces(s, v);
    bool whole = typed_is_object(v) && image_ctype_is_whole(v->type);
    if (whole && is_on_stack(v->a)) return kept_words(s, v);
    if (whole) return typed_object(&s->maker, v->type, scope_entered(s, s->address, v->a));
    return scope_entered(s, s->address, typed_value(&s->maker, v));
}

/* --- variables of its own at ways out --- */

const snippet *scope_at_exits(inlay_scope *s, const image_variable *v, const char **why)
{
    bool anywhere = !v->is_for_here;
    switch (v->kind) {
    case IMAGE_PLACE_ADDRESS:
    case IMAGE_PLACE_TLS:
    case IMAGE_PLACE_VALUE:
    case IMAGE_PLACE_BYTES:
        if (anywhere) return scope_variable(s, s->image, v);
        break;
    case IMAGE_PLACE_RELATIVE: /* the frame is gone, but for what signal handlers leave alone */
        if (anywhere && v->by_frame && v->reg == tool_isa()->stack_reg && v->offset >= -(int64_t)tool_red_zone)
            return scope_variable(s, s->image, v);
        break;
    default: break;
    }
    *why = "it is not the same place at all ways out of the procedure; the address of one of them has it, perhaps";
    return NULL;
}
