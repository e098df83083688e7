/* Addresses of running code, as snippets see them.
 *
 * In a rewritten program an indirect branch goes to the moved code or to the original, and a return
 * address is one of moved code, all of them at the address where the image happens to lie. A tool is
 * to see what it would see under any other engine: the original's address, as the instrumentor knows
 * it. So each such node is replaced by a call of rewrite_original on it. Nodes are immutable and may
 * be shared: what is on the way to a replaced one is copied. */
#include "tool/rewriter.h"
#include "rewrite/run.h"

static bool sees_code_address(const snippet *s, const weave_insn *at)
{
    if (s->kind == SNIPPET_RETADDR) return true;
    if (s->kind != SNIPPET_TARGET || !at) return false;
    return at->in.flow == ISA_FLOW_JUMP_IND || at->in.flow == ISA_FLOW_CALL_IND ||
           at->in.flow == ISA_FLOW_RETURN;
}

static const snippet *translated(inl_arena *a, const snippet *s)
{
    snippet *call = snippet_new(a, SNIPPET_CALL);
    const snippet **args = inl_arena_alloc(a, sizeof *args);
    if (!call || !args) return NULL;
    args[0] = s;
    call->fn = (void (*)(void))rewrite_original;
    call->args = args;
    call->nargs = 1;
    return call;
}

static const snippet *wrap(inl_arena *a, const snippet *s, const weave_insn *at);

/* A copy with its kids wrapped, or the node itself when none changed. NULL: out of memory. */
static const snippet *wrap_kids(inl_arena *a, const snippet *s, const weave_insn *at)
{
    snippet copy = *s;
    const snippet **kids[] = {&copy.a, &copy.b, &copy.c};
    bool changed = false;
    for (int i = 0; i < 3; i++) {
        if (!*kids[i]) continue;
        const snippet *k = wrap(a, *kids[i], at);
        if (!k) return NULL;
        changed |= k != *kids[i];
        *kids[i] = k;
    }
    const snippet **args = NULL;
    for (unsigned i = 0; i < s->nargs; i++) {
        const snippet *k = wrap(a, s->args[i], at);
        if (!k) return NULL;
        if (k == s->args[i]) continue;
        if (!args) {
            args = inl_arena_alloc(a, s->nargs * sizeof *args);
            if (!args) return NULL;
            for (unsigned n = 0; n < s->nargs; n++) args[n] = s->args[n];
        }
        args[i] = k;
    }
    if (args) copy.args = args;
    if (!changed && !args) return s;
    snippet *fresh = snippet_new(a, s->kind);
    if (fresh) *fresh = copy;
    return fresh;
}

static const snippet *wrap(inl_arena *a, const snippet *s, const weave_insn *at)
{
    return sees_code_address(s, at) ? translated(a, s) : wrap_kids(a, s, at);
}

static bool wrap_list(weave_run *run, weave_list *l, const weave_insn *at)
{
    for (weave_insert *n = l->first; n; n = n->next) {
        if (n->code->kind == SNIPPET_COUNT && n->code->a->kind == SNIPPET_CONST) continue;
        if (!snippet_has(n->code, SNIPPET_TARGET) && !snippet_has(n->code, SNIPPET_RETADDR)) continue;
        n->code = wrap(run->arena, n->code, at);
        if (!n->code) return false;
    }
    return true;
}

bool rewriter_wrap(weave_run *run)
{
    bool good = true;
    for (uint32_t i = 0; i < run->insn_count && good; i++) {
        weave_insn *in = &run->insns[i];
        good = wrap_list(run, &in->before, in) && wrap_list(run, &in->after, in) &&
               wrap_list(run, &in->taken, in);
    }
    for (uint32_t i = 0; i < run->block_count && good; i++)
        good = wrap_list(run, &run->blocks[i].anywhere, NULL);
    return good;
}
