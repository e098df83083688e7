/* The processor remembers where the last instruction of the x87's stood, and tells it with the x87's state: to programs
 * that have no other way to learn where they are (or that look whether somebody translates them), and to handlers of
 * floating-point exceptions. In the cache it remembers Inlay's address. So a run ends behind what stores that state:
 * where no address has been stored, as mostly, it goes on at once; its other exit is linked to nothing, and in the
 * dispatcher the program's address is put in the place of the cache's. What is loaded again is the program's address
 * then. (From the environment's form of 16 bits no address can be told.)
 */
#include "isa/x86_64/x86.h"
#include "jit/core.h"
#include "run/kernel.h"
#include "run/x86_64/abi.h"

#include <string.h>

enum { OP_ENVIRONMENT = 0xd9, OP_STATE = 0xdd, OP_FXSAVE = 0xae, OP_XSAVEC = 0xc7 };

static bool is_of_x87(const isa_insn *in)
{
    unsigned op = in->raw[in->opcode_at];
    return op == OP_ENVIRONMENT || op == OP_STATE;
}

static jit_pointer_place where_stored(const isa_insn *in)
{
    bool is_short = memchr(in->raw, 0x66, in->opcode_at) != NULL;
    if (is_of_x87(in)) return (jit_pointer_place){12, is_short ? 0 : 4};
    return (jit_pointer_place){8, strstr(isa_x86_64.mnemonic(in->op), "64") ? 8 : 4};
}

jit_pointer_place jit_pointer_told(const isa_insn *in)
{
    static const char *const names[] = {"fnstenv", "fnsave", "fxsave",   "fxsave64", "xsave",
                                        "xsave64", "xsavec", "xsavec64", "xsaveopt", "xsaveopt64"};
    unsigned op = in->raw[in->opcode_at];
    const jit_pointer_place none = {0};
    if (!(in->bits & ISA_BIT_MEM) || !(is_of_x87(in) || op == OP_FXSAVE || op == OP_XSAVEC)) return none;
    const char *name = isa_x86_64.mnemonic(in->op);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (!strcmp(name, names[i])) return where_stored(in);
    return none;
}

static bool is_x87_at(uint64_t pc)
{
    isa_insn in;
    return isa_x86_64.decode((const uint8_t *)pc, ISA_MAX_INSN, pc, &in) <= ISA_UNKNOWN &&
           (in.raw[in.opcode_at] & 0xf8) == 0xd8;
}

/* The program's address for one in the cache; 0: of code that has been given up nothing is known any more. */
static uint64_t program_address(uint64_t pc)
{
    weave_map_entry entry;
    bool in_snippet;
    const jit_fragment *f = jit_fragment_of_cache(pc);
    if (!f || !jit_fragment_map(f, pc, &entry, &in_snippet) || in_snippet) return 0;
    return is_x87_at(pc) ? entry.app : 0;
}

/* Lock held. There may be no more than 32 bits of it, which several arenas may have: where such an instruction stands
 * it is. What is nowhere in the cache is the program's own already. */
static uint64_t shown(uint64_t told, unsigned width)
{
    uint64_t mask = width == 8 ? UINT64_MAX : UINT32_MAX, found = told;
    for (uint32_t i = 0; i < jit.cache.arena_high; i++) {
        const jit_arena *a = &jit.cache.arenas[i];
        uint64_t distance = (told - a->exec) & mask;
        if (!a->exec || distance >= a->size) continue;
        found = program_address(a->exec + distance);
        if (found) break;
    }
    return found;
}

uint64_t jit_pointer_shown(uint64_t told)
{
    inl_lock_take(&run_here.lock);
    uint64_t to = shown(told, sizeof told);
    inl_lock_release(&run_here.lock);
    return to;
}

static const isa_mem *explicit_operand(const isa_insn *in, isa_mem mem[ISA_MAX_MEM])
{
    int count = isa_x86_64.memory(in, mem);
    for (int i = 0; i < count; i++)
        if (!(mem[i].bits & ISA_MEM_IMPLICIT)) return &mem[i];
    return NULL;
}

void jit_pointer_stored(run_thread *t, uint64_t app)
{
    uint8_t bytes[ISA_MAX_INSN];
    isa_insn in = {0};
    isa_mem mem[ISA_MAX_MEM];
    size_t left = run_safe_copy(bytes, (const void *)app, sizeof bytes);
    isa_result r = isa_x86_64.decode(bytes, sizeof bytes - left, app, &in);
    if (r == ISA_TRUNCATED || r == ISA_INVALID) return; /* it has been written over since */
    const jit_pointer_place field = jit_pointer_told(&in);
    const isa_mem *m = field.width ? explicit_operand(&in, mem) : NULL;
    uint64_t told = 0;
    if (!m) return;
    uint64_t at = run_memory_address(&t->ctx, m) + field.at;
    if (!run_address_possible(at) || !run_read(&told, at, field.width)) return;
    inl_lock_take(&run_here.lock);
    uint64_t to = shown(told, field.width);
    inl_lock_release(&run_here.lock);
    if (to != told) run_write(at, &to, field.width);
}
