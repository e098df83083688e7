/* Instructions, their operands, and blocks: handles are the weaver's own, so these are thin. */
#include "tool/glibc.h"
#include "tool/operands.h"
#include "tool/state.h"

#include <elf.h>
#include <stdio.h>
#include <string.h>

static const weave_insn *own(const inlay_insn *i) { return (const weave_insn *)i; }
static const weave_block *own_block(const inlay_block *b) { return (const weave_block *)b; }

/* Of no instruction (NULL) all is 0. */
static const isa_insn *decoded(const inlay_insn *i)
{
    static const isa_insn none;
    return i ? &own(i)->in : &none;
}
static const tool_insn_details no_details;

void tool_insns_begin(void)
{
    tool_now->insn.memory_of = tool_now->insn.effects_of = tool_now->insn.operands_of = NULL;
}

const isa *tool_isa(void) { return isa_for_machine(__ehdr_start.e_machine); }
inlay_reg inlay_reg_stack_pointer(void) { return tool_isa()->stack_reg; }

uint64_t inlay_insn_address(const inlay_insn *i) { return decoded(i)->addr; }
unsigned inlay_insn_size(const inlay_insn *i) { return decoded(i)->len; }
const uint8_t *inlay_insn_bytes(const inlay_insn *i) { return decoded(i)->raw; }
unsigned inlay_insn_opcode(const inlay_insn *i) { return decoded(i)->op; }
inlay_proc *inlay_insn_proc(const inlay_insn *i)
{
    if (!i) return NULL;
    return own(i)->run->view ? tool_code_proc(own(i)->run) : tool_proc_at(own(i)->in.addr);
}
bool inlay_insn_wanted(const inlay_insn *i) { return i && tool_address_wanted(own(i)->in.addr); }

/* Behind a block's last instruction. Where an engine cut the block because something leads to what follows
 * (run.h), it goes on to the next control transfer. */
static uint32_t end_of(const weave_block *b)
{
    const weave_run *run = b->run;
    const weave_block *last = &run->blocks[run->block_count - 1];
    while (b < last && b[1].fallen_into) b++;
    return b->first + b->count + (b == last ? run->behind : 0);
}

inlay_insn *inlay_insn_next(const inlay_insn *insn)
{
    const weave_insn *i = own(insn);
    return i && i->index + 1 < end_of(&i->run->blocks[i->block]) ? (inlay_insn *)&i->run->insns[i->index + 1] : NULL;
}

bool tool_insn_is_shared(const weave_block *b, uint32_t index)
{
    return index >= b->first + b->count && index < end_of(b);
}

inlay_block *inlay_insn_block(const inlay_insn *i)
{
    return i ? (inlay_block *)&own(i)->run->blocks[own(i)->block] : NULL;
}

unsigned inlay_opcode_count(void) { return tool_isa()->op_count; }
const char *inlay_opcode_name(unsigned op)
{
    return op < inlay_opcode_count() ? tool_isa()->mnemonic((uint16_t)op) : "?";
}
const char *inlay_opcode_class(unsigned op)
{
    return op < inlay_opcode_count() ? tool_isa()->category((uint16_t)op) : "?";
}

const char *inlay_insn_text(const inlay_insn *i, char *out, size_t size)
{
    if (!out) return NULL;
    if (size) out[0] = '\0';
    if (i) own(i)->run->isa->format(&own(i)->in, out, size);
    return out;
}

static bool flow_in(const inlay_insn *i, uint32_t set) { return i && set >> own(i)->in.flow & 1; }
#define BIT(flow) (1u << ISA_FLOW_##flow)

bool inlay_insn_is_branch(const inlay_insn *i)
{
    return flow_in(i, BIT(JUMP) | BIT(COND) | BIT(COND_REG) | BIT(CALL) | BIT(JUMP_IND) | BIT(CALL_IND) | BIT(RETURN));
}
bool inlay_insn_is_conditional(const inlay_insn *i) { return flow_in(i, BIT(COND) | BIT(COND_REG)); }
bool inlay_insn_is_call(const inlay_insn *i) { return flow_in(i, BIT(CALL) | BIT(CALL_IND)); }
bool inlay_insn_is_return(const inlay_insn *i) { return flow_in(i, BIT(RETURN)); }
bool inlay_insn_is_indirect(const inlay_insn *i) { return flow_in(i, BIT(JUMP_IND) | BIT(CALL_IND) | BIT(RETURN)); }
bool inlay_insn_is_syscall(const inlay_insn *i) { return flow_in(i, BIT(SYSCALL)); }
bool inlay_insn_falls_through(const inlay_insn *i) { return flow_in(i, BIT(NEXT)); }

static bool has_bit(const inlay_insn *i, unsigned bits) { return (decoded(i)->bits & bits) != 0; }
bool inlay_insn_is_rep(const inlay_insn *i) { return has_bit(i, ISA_BIT_REP); }
bool inlay_insn_is_predicated(const inlay_insn *i) { return has_bit(i, ISA_BIT_PREDICATED); }
bool inlay_insn_is_atomic(const inlay_insn *i)
{
    return has_bit(i, ISA_BIT_LOCK) || (i && tool_operands_lock(&own(i)->in));
}

uint64_t inlay_insn_target(const inlay_insn *i)
{
    return flow_in(i, BIT(JUMP) | BIT(COND) | BIT(COND_REG) | BIT(CALL)) ? own(i)->in.target : 0;
}

static const tool_insn_details *ask_memory(const weave_insn *i)
{
    tool_insn_details *kept = &tool_now->insn;
    if (!i) return &no_details;
    if (kept->memory_of == i) return kept;
    kept->memory_count = i->run->isa->memory(&i->in, kept->memory);
    kept->memory_of = i;
    return kept;
}

unsigned inlay_insn_memory_count(const inlay_insn *i) { return (unsigned)ask_memory(own(i))->memory_count; }

inlay_memory inlay_insn_memory(const inlay_insn *i, unsigned k)
{
    const tool_insn_details *kept = ask_memory(own(i));
    if (k >= (unsigned)kept->memory_count) return (inlay_memory){0};
    const isa_mem *m = &kept->memory[k];
    return (inlay_memory){
        .read = m->access & ISA_READ,
        .write = m->access & ISA_WRITE,
        .prefetch = m->access & ISA_PREFETCH,
        .implicit = m->bits & ISA_MEM_IMPLICIT,
        .repeated = m->bits & ISA_MEM_REPEATED,
        .masked = m->mask,
        .settable = !weave_setting_fault(own(i)->run->isa, &own(i)->in, m),
        .size = m->mask ? m->element : m->size,
        .elements = m->mask ? m->elements : m->count,
    };
}

static const isa_effects *ask_effects(const weave_insn *i)
{
    tool_insn_details *kept = &tool_now->insn;
    if (!i) return &no_details.effects;
    if (kept->effects_of != i) i->run->isa->effects(&i->in, &kept->effects);
    kept->effects_of = i;
    return &kept->effects;
}

uint64_t inlay_insn_regs_read(const inlay_insn *i) { return ask_effects(own(i))->reads; }
uint64_t inlay_insn_regs_written(const inlay_insn *i) { return ask_effects(own(i))->writes; }
/* What saves and restores the whole state names none of them; what the kernel does (a system call) is not meant. */
static uint32_t with_state(const inlay_insn *i, uint32_t vectors, unsigned other)
{
    return other & ISA_OTHER_ALL_VEC && decoded(i)->flow != ISA_FLOW_SYSCALL ? ~0u : vectors;
}

uint32_t inlay_insn_vectors_read(const inlay_insn *i)
{
    const isa_effects *fx = ask_effects(own(i));
    return with_state(i, fx->vec_reads, fx->other_reads);
}

uint32_t inlay_insn_vectors_written(const inlay_insn *i)
{
    const isa_effects *fx = ask_effects(own(i));
    return with_state(i, fx->vec_writes, fx->other_writes);
}

uint32_t inlay_insn_flags_read(const inlay_insn *i) { return ask_effects(own(i))->flags_read; }
uint32_t inlay_insn_flags_written(const inlay_insn *i)
{
    const isa_effects *fx = ask_effects(own(i));
    return fx->flags_written | fx->flags_undefined;
}

static const tool_insn_details *ask_operands(const inlay_insn *insn)
{
    const weave_insn *i = own(insn);
    tool_insn_details *kept = &tool_now->insn;
    if (!i) return &no_details;
    if (kept->operands_of == i) return kept;
    kept->operand_count = (unsigned)i->run->isa->operands(&i->in, kept->operands);
    kept->operands_of = i;
    return kept;
}

unsigned inlay_insn_operand_count(const inlay_insn *insn) { return ask_operands(insn)->operand_count; }

inlay_operand inlay_insn_operand(const inlay_insn *insn, unsigned k)
{
    const tool_insn_details *kept = ask_operands(insn);
    if (k >= kept->operand_count) return (inlay_operand){.kind = INLAY_OPERAND_NONE};
    return tool_operand(&kept->operands[k]);
}

/* --- blocks --- */

static const weave_insn *last_of(const weave_block *b) { return &b->run->insns[end_of(b) - 1]; }

uint64_t inlay_block_address(const inlay_block *b)
{
    return b ? own_block(b)->run->insns[own_block(b)->first].in.addr : 0;
}
uint64_t inlay_block_size(const inlay_block *b)
{
    if (!b) return 0;
    const weave_insn *last = last_of(own_block(b));
    return last->in.addr + last->in.len - inlay_block_address(b);
}
unsigned inlay_block_insn_count(const inlay_block *b) { return b ? end_of(own_block(b)) - own_block(b)->first : 0; }
inlay_insn *inlay_block_first(inlay_block *b)
{
    return b ? (inlay_insn *)&own_block(b)->run->insns[own_block(b)->first] : NULL;
}
inlay_insn *inlay_block_last(inlay_block *b) { return b ? (inlay_insn *)last_of(own_block(b)) : NULL; }
inlay_proc *inlay_block_proc(const inlay_block *b)
{
    if (!b) return NULL;
    const weave_run *run = own_block(b)->run;
    return run->view ? tool_code_proc(run) : tool_proc_at(inlay_block_address(b));
}
inlay_image *inlay_block_image(const inlay_block *b) { return b ? tool_image_at(inlay_block_address(b)) : NULL; }
bool inlay_block_is_head(const inlay_block *b) { return b && own_block(b)->head; }
bool inlay_block_wanted(const inlay_block *b) { return b && tool_address_wanted(inlay_block_address(b)); }
