/* Calls that stay in place.
 *
 * Where a program looks its return addresses up in tables of its own, a procedure moves all the same if each of its
 * calls is made where it was: the new code jumps to the old call, and what lies behind that is caught.
 *
 *     old  ...  | call f | jmp behind | ...           new  ... ; jmp call     behind: ...
 *
 * Return addresses are the old ones then, whoever looks at them. Where what is behind a call ends with the next one
 * before there is room for a jump, that next one is made in the new code, with the old return address:
 *
 *     old  | call f | xor eax,eax ; call g | ...      push %rax ; lea behind_g(%rip),%rax ; xchg %rax,(%rsp) ; jmp g
 *
 * So is one that a procedure begins with (`call *__fentry__@GOTPCREL(%rip)`).
 *
 * This is for OCaml, whose procedures are known by its frame table, for profiled programs (-pg), and for Go.
 *
 * Go's runtime does more. To take the processor from a goroutine its signal handler has it call something
 * (asyncPreempt) from wherever it is; the address that this returns to is looked up, too, so it is the old one, of any
 * instruction. That procedure's return is a routine of the client's, which goes on at the instruction's new place.
 * Procedures of Go that the compiler has not made stay: addresses inside are computed (goexit), return addresses
 * changed. A compiled one begins with a look at its stack's limit, or calls nothing. In a process that ran before, a
 * goroutine may have been interrupted where a jump would stand, so all of Go stays there. */
#include "move/isa.h"

bool move_calls_can_stay(const move_work *w) { return w->isa->call_in_place != NULL; }

/* A block's last instruction, if it is a call. */
static bool call_of(const cfg_program *p, const cfg_block *b, isa_insn *in)
{
    return b->flags & CFG_BLOCK_CALL && move_last_insn(p, b, in) &&
           (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND);
}

/* --- Go --- */

static bool does(const cfg_program *p, uint32_t proc, unsigned what)
{
    const cfg_proc *of = &p->procs[proc];
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
        if (p->blocks[k].flags & what) return true;
    return false;
}

/* Of the first block and of what follows it: of a very large frame the compiler looks first whether there are such
 * addresses at all. */
static const uint8_t *first_bytes(const cfg_program *p, uint32_t proc, uint32_t *size)
{
    const uint8_t *bytes;
    const cfg_block *first = &p->blocks[p->procs[proc].first_block];
    *size = p->procs[proc].block_count ? first->size : 0;
    if (p->procs[proc].block_count > 1 && first[1].addr == first->addr + first->size) *size += first[1].size;
    return image_bytes(p->image, first->addr, &bytes) >= *size ? bytes : NULL;
}

uint32_t move_find_return(const move_work *w)
{
    const cfg_program *p = move_cfg(w);
    uint32_t found = CFG_NONE, size;
    if (!move_calls_can_stay(w) || w->target->has_frames || !w->instruments || !w->client->go_back) return CFG_NONE;
    for (uint32_t i = 0; i < p->proc_count; i++) {
        if (!p->procs[i].block_count) continue;
        const uint8_t *bytes = first_bytes(p, i, &size);
        if (!bytes || !w->isa->keeps_everything(bytes, size)) continue;
        if (found != CFG_NONE || p->procs[i].status != CFG_PROC_WHOLE) return CFG_NONE;
        found = i;
    }
    return found;
}

bool move_return_anywhere(move_work *w)
{
    const char *why;
    for (uint32_t i = 0; w->proc == w->goes_back && i < w->run.insn_count; i++) {
        if (w->run.insns[i].in.flow != ISA_FLOW_RETURN) continue;
        snippet *context = snippet_new(w->run.arena, SNIPPET_CONTEXT), *call = snippet_new(w->run.arena, SNIPPET_CALL);
        const snippet **args = inl_arena_alloc(w->run.arena, sizeof *args);
        if (!context || !call || !args) return false;
        *args = context;
        call->fn = w->client->go_back;
        call->args = args;
        call->nargs = 1;
        if (!weave_insert_at(&w->run, WEAVE_BEFORE, i, call, false, &why)) return false;
    }
    return true;
}

const char *move_refuse_compiled(move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    uint32_t size;
    const uint8_t *bytes = first_bytes(p, proc, &size);
    if (does(p, proc, CFG_BLOCK_SYSCALL)) return "Go's runtime makes a system call in it, and looks at where it is";
    if (!does(p, proc, CFG_BLOCK_CALL)) return NULL;
    if (bytes && (proc == w->goes_back || w->isa->checks_limit(bytes, size))) {
        w->calls_stay[proc] = 1;
        return NULL;
    }
    return "Go's runtime looks return addresses up in its own tables, and it does not begin as what Go compiles does";
}

/* --- what is caught --- */

void move_mark_returns(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    for (uint32_t i = 0; i < p->block_count; i++) {
        const cfg_block *b = &p->blocks[i];
        if (!(b->flags & CFG_BLOCK_CALL) || !w->calls_stay[b->proc]) continue;
        uint32_t behind = cfg_block_at(p, b->addr + b->size);
        if (behind != CFG_NONE && p->blocks[behind].proc == b->proc) w->block_bits[behind] |= MOVE_BEHIND_CALL;
    }
}

/* A call of what is named, or of what a word that is named holds. */
static bool is_of_name(const cfg_program *p, const isa_insn *call)
{
    isa_mem mem[ISA_MAX_MEM];
    if (call->flow == ISA_FLOW_CALL) return true;
    return call->bits & ISA_BIT_PCREL_MEM && p->isa->memory(call, mem) > 0 && !mem[0].segment;
}

/* The call of a block in which there is no room for a jump otherwise. */
static bool is_made_anew(const move_work *w, uint32_t block, const isa_insn *call)
{
    const cfg_block *b = &move_cfg(w)->blocks[block];
    uint32_t room = b->size - call->len;
    return is_of_name(move_cfg(w), call) && w->block_bits[block] & MOVE_CATCH && room < w->isa->far_jump;
}

uint32_t move_bytes_that_stay(const move_work *w, uint32_t block)
{
    const cfg_block *b = &move_cfg(w)->blocks[block];
    isa_insn call;
    if (!w->calls_stay[b->proc] || !call_of(move_cfg(w), b, &call)) return 0;
    return is_made_anew(w, block, &call) ? 0 : call.len;
}

/* --- new code --- */

bool move_call_stays(const move_work *w, const isa_insn *in)
{
    return (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND) && w->calls_stay[w->proc];
}

bool move_lower(move_work *w, isa_code *c, const weave_run *run, uint32_t i)
{
    const isa_insn *in = &run->insns[i].in;
    if (!move_call_stays(w, in)) return w->isa->lower(w, c, run, i);
    uint32_t block = cfg_block_covering(move_cfg(w), in->addr - w->plan.bias);
    if (block != CFG_NONE && is_made_anew(w, block, in)) return w->isa->call_from_old(w, c, in);
    return w->isa->call_in_place(w, c, in);
}
