/* What was inserted in static views (code.h), and procedures that are replaced or wrapped: kept by address, and put
 * into each run that an engine shows. */
#include "tool/code.h"
#include "tool/wrap.h"
#include "cfg/changes.h"
#include "weave/isa.h"

void code_touch(tool_code *c, uint64_t address, int times)
{
    uint32_t b = c->cfg ? cfg_block_covering(c->cfg, address - c->image->bias) : CFG_NONE;
    if (b != CFG_NONE && c->touched) c->touched[c->cfg->blocks[b].proc] += (uint32_t)times;
}

unsigned code_result_register(void) { return weave_isa_of(tool_isa())->abi.result; }

static const snippet *code_in(uint64_t value) { return (const snippet *)(uintptr_t)(value & ~(uint64_t)CODE_KIND); }

bool tool_code_touched(const inlay_image *i, uint32_t proc)
{
    return i->code && (!i->code->touched || i->code->touched[proc]);
}

/* Called behind an insertion at a point of a static view. */
bool tool_code_note(weave_insn *insn)
{
    tool_code *c = code_view_behind(insn->run)->code;
    c->image->process->code_inserted = true;
    code_touch(c, insn->in.addr, 1);
    return inl_map_put(&c->inserts, insn->in.addr, (uint64_t)(uintptr_t)insn);
}

void tool_code_unnote(const weave_insn *insn) { code_touch(code_view_behind(insn->run)->code, insn->in.addr, -1); }

static void append(weave_run *run, weave_insn *to, weave_where where, const weave_list *from)
{
    const char *why;
    for (const weave_insert *i = from->first; i; i = i->next)
        if (!weave_insert_at(run, where, to->index, i->code, i->predicated, &why))
            tool_say_limited("cannot insert at 0x%llx: %s", (unsigned long long)to->in.addr, why);
}

static void note_fault(const isa_insn *in, const char *why)
{
    tool_say_limited("cannot replace what is at 0x%llx: %s", (unsigned long long)in->addr, why);
}

/* What a run's instruction does is done by a snippet; the instruction becomes another. */
static void become(weave_run *run, weave_insn *i, const snippet *code, code_bytes bytes)
{
    isa_insn in;
    const char *why;
    run->isa->decode(bytes.at, bytes.size, i->in.addr, &in);
    i->in = in;
    i->elided = 0;
    if (!weave_insert_at(run, WEAVE_BEFORE, i->index, code, false, &why)) note_fault(&in, why);
}

/* --- a procedure that is replaced: its first instruction becomes a return, the last thing of its block
 * and, where the engine looks no further than the run (JIT), of the run. The blocks of a whole procedure
 * (rewriting) stay, unreached. */
static const snippet *replacement_at(inlay_image **image, uint64_t at, unsigned kind)
{
    uint64_t found;
    if (!*image || at < (*image)->low || at >= (*image)->high) *image = tool_image_at(at);
    tool_code *c = *image ? (*image)->code : NULL;
    if (!c || !c->replaced.count || !inl_map_get(&c->replaced, at, &found)) return NULL;
    return (found & CODE_KIND) == kind ? code_in(found) : NULL;
}

const snippet *tool_code_cut(weave_run *run, tool_cut *cut)
{
    const snippet *found = NULL;
    uint32_t k = 0;
    inlay_image *image = NULL;
    while (k < run->insn_count && !(found = replacement_at(&image, run->insns[k].in.addr, 0))) k++;
    if (!found) return NULL;
    weave_block *b = &run->blocks[run->insns[k].block];
    bool whole = code_shows_whole();
    cut->index = k;
    cut->insn_count = whole ? run->insn_count : k + 1;
    cut->block_count = whole ? run->block_count : run->insns[k].block + 1;
    b->count = k - b->first;
    run->insn_count = whole ? 0 : k;
    run->block_count = whole ? 0 : run->insns[k].block + (b->count > 0);
    return found;
}

/* By the procedure that is replaced, so that its callers do not count on these; but on the result. */
static isa_regs changed_at(uint64_t addr)
{
    const inlay_image *image = tool_image_at(addr);
    const cfg_program *p = image->code->cfg;
    uint32_t b = cfg_block_at(p, addr - image->bias);
    isa_regs changed = b == CFG_NONE ? 0 : cfg_proc_changes(p, p->blocks[b].proc).regs;
    return changed & ~WEAVE_BIT(code_result_register());
}

void tool_code_replace(weave_run *run, const tool_cut *cut, const snippet *code)
{
    weave_insn *i = &run->insns[cut->index];
    run->insn_count = cut->insn_count;
    run->block_count = cut->block_count;
    run->blocks[i->block].count = cut->index - run->blocks[i->block].first + 1;
    i->unwanted = changed_at(i->in.addr);
    become(run, i, code, code_return);
}

/* --- calls of a procedure that is replaced where it is called: a call goes on behind itself, a jump has
 * been the last thing before the return. */
static void replace_call(weave_run *run, weave_insn *i, const snippet *code)
{
    code_bytes nothing = code_nothing(i->in.len);
    weave_list taken = i->taken;
    i->taken = (weave_list){0};
    i->was_call = i->in.flow == ISA_FLOW_CALL;
    append(run, i, WEAVE_BEFORE, &taken);
    if (i->in.flow == ISA_FLOW_JUMP) become(run, i, code, code_return);
    else if (nothing.size) become(run, i, code, nothing);
    else note_fault(&i->in, "a call of unusual length");
}

void tool_code_replace_calls(weave_run *run)
{
    inlay_image *image = NULL;
    for (uint32_t k = 0; k < run->insn_count; k++) {
        weave_insn *i = &run->insns[k];
        if (i->in.flow != ISA_FLOW_CALL && i->in.flow != ISA_FLOW_JUMP) continue;
        const snippet *code = replacement_at(&image, i->in.addr, CODE_AT_CALL);
        if (!code) continue;
        bool ends = i->in.flow == ISA_FLOW_JUMP;
        replace_call(run, i, code);
        if (!ends || code_shows_whole()) continue;
        run->insn_count = k + 1; /* the JIT may have followed the jump */
        run->block_count = i->block + 1;
    }
}

/* --- procedures that are wrapped: the call of what stands in for one comes before all else that is inserted there */

static void join(weave_list *to, const weave_list *more)
{
    if (!more->first) return;
    if (to->last) to->last->next = more->first;
    else to->first = more->first;
    to->last = more->last;
}

/* What is inserted anywhere in the block comes behind it too: the block is not executed when the routine comes first.
 */
static void put_first(weave_run *run, weave_insn *i, const snippet *code)
{
    const char *why;
    weave_block *b = &run->blocks[i->block];
    weave_list others = i->before;
    i->before = (weave_list){0};
    if (!weave_insert_at(run, WEAVE_BEFORE, i->index, code, false, &why)) note_fault(&i->in, why);
    if (i->index == b->first) {
        join(&i->before, &b->anywhere);
        b->anywhere = (weave_list){0};
    }
    join(&i->before, &others);
}

void tool_code_apply_wraps(weave_run *run)
{
    inlay_image *image = NULL;
    for (uint32_t k = 0; k < run->insn_count; k++) {
        weave_insn *i = &run->insns[k];
        const snippet *code = replacement_at(&image, i->in.addr, CODE_IS_WRAP);
        if (!code) code = replacement_at(&image, i->in.addr, CODE_IS_WRAP | CODE_AT_CALL);
        if (code) put_first(run, i, code);
    }
}

static void visit_insn(weave_insn *i, const tool_code_visitor *v)
{
    weave_block *b = &i->run->blocks[i->block];
    if (i->index == b->first) v->list(v->arg, i->run, &b->anywhere);
    v->list(v->arg, i->run, &i->before);
    v->list(v->arg, i->run, &i->after);
    v->list(v->arg, i->run, &i->taken);
}

void tool_code_visit(inlay_image *image, const tool_code_visitor *v)
{
    size_t at = 0;
    uint64_t key, value;
    const tool_code *c = image->code;
    if (!c) return;
    while (inl_map_next(&c->inserts, &at, &key, &value)) visit_insn((weave_insn *)(uintptr_t)value, v);
    at = 0;
    while (v->replaced && inl_map_next(&c->replaced, &at, &key, &value)) v->replaced(v->arg, code_in(value));
}

void tool_code_apply(weave_run *run)
{
    inlay_image *image = NULL;
    for (uint32_t k = 0; k < run->insn_count; k++) {
        weave_insn *insn = &run->insns[k];
        uint64_t at = insn->in.addr, found;
        if (!image || at < image->low || at >= image->high) image = tool_image_at(at);
        tool_code *c = image ? image->code : NULL;
        if (!c || !c->inserts.count || !inl_map_get(&c->inserts, at, &found)) continue;
        const weave_insn *from = (const weave_insn *)(uintptr_t)found;
        const weave_block *b = &from->run->blocks[from->block];
        if (from->index == b->first) append(run, insn, WEAVE_BEFORE, &b->anywhere);
        append(run, insn, WEAVE_BEFORE, &from->before);
        append(run, insn, WEAVE_AFTER, &from->after);
        append(run, insn, WEAVE_TAKEN, &from->taken);
    }
}
