/* Fixed pieces of code around the translated bodies: an arena's shared tails, exit stubs, and the
 * landing in front of a body that is entered indirectly.
 *
 * Landing of application address A (rcx = target, the program's rcx and rdx in their slots):
 *
 *          mov rdx, -A
 *          lea rcx, [rcx + rdx]
 *          jrcxz ours
 *          jmp indirect_miss        ; rcx = target - A, rdx = -A
 *     ours: mov rcx, gs:slot ; mov rdx, gs:slot      (where the code there wants them: wanted.c)
 *          body
 *
 * so that flags are not touched. The table's entry is chosen by 16 bits only, hence the check. */
#include "isa/x86_64/emit.h"
#include "jit/core.h"
#include "jit/x86_64/layout.h"

#include <string.h>

#define AT(field, off) _Static_assert(offsetof(jit_own, field) + OFF_ENGINE == (off), #field)
AT(ibl_table2, OFF_IBL_TABLE2);
AT(ibl_miss, OFF_IBL_MISS);
AT(in_gate, OFF_IN_GATE);
AT(syscall_resume, OFF_SYSCALL_RESUME);
AT(kind, OFF_KIND);
AT(scratch, OFF_SCRATCH);
AT(executed, OFF_EXECUTED);
AT(missed, OFF_MISSED);
AT(returns, OFF_RETURNS);
_Static_assert(WEAVE_IBL == OFF_IBL, "block layout");
_Static_assert(JIT_TABLE2_FACTOR == TABLE2_FACTOR && JIT_TABLE2_SHIFT == TABLE2_SHIFT, "one hash");

void jit_emit_tails(jit_arena *a)
{
    static const uint8_t movzx_edx_cx[] = {0x0f, 0xb7, 0xd1};
    x86_code c = {.write = a->write, .exec = a->exec, .size = JIT_TAILS_ROOM};
    a->exit_tail = (uint32_t)c.at;
    x86_store_imm(&c, 8, x86_gs(OFF_LEAVE), RUN_LEAVE_EXIT);
    x86_jmp_m(&c, x86_gs(OFF_DISPATCH_ENTRY));
    x86_align(&c, 16);
    a->indirect_miss = (uint32_t)c.at;
    x86_not(&c, 8, X86_RDX); /* rdx = A - 1 */
    x86_lea(&c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 1));
    x86_jmp_m(&c, x86_gs(OFF_IBL_MISS));
    x86_align(&c, 16);
    a->return_miss = (uint32_t)c.at;
    x86_not(&c, 8, X86_RDX);
    x86_lea(&c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 1));
    x86_bytes(&c, movzx_edx_cx, sizeof movzx_edx_cx);
    x86_mov_rr(&c, 8, X86_RSP, X86_R11);
    x86_load(&c, 8, X86_R11, x86_gs(OFF_SLOT_R11));
    x86_jmp_m(&c, (x86_addr){ISA_NO_REG, X86_RDX, 8, X86_SEG_GS, false, OFF_IBL});
    a->code_at = JIT_TAILS_ROOM;
}

/* There are two of them a translation: the bytes are those of
 *          mov dword ptr gs:[OFF_LEAVE_ARG], exit ; jmp exit_tail */
void jit_emit_stub(x86_code *c, const jit_arena *a, const jit_exit *e)
{
    uint8_t stub[JIT_STUB_BYTES] = {0x65, 0xc7, 0x04, 0x25, [12] = 0xe9};
    uint32_t field = OFF_LEAVE_ARG, ref = jit_meta_ref(e);
    uint32_t distance = (uint32_t)(a->exec + a->exit_tail - (x86_here(c) + sizeof stub));
    memcpy(stub + 4, &field, 4);
    memcpy(stub + 8, &ref, 4);
    memcpy(stub + 13, &distance, 4);
    x86_bytes(c, stub, sizeof stub);
}

static void check_target(x86_code *c, uint64_t app, uint64_t otherwise)
{
    x86_mov_ri(c, X86_RDX, -app);
    x86_lea(c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 0));
    x86_label ours = x86_jrcxz_label(c);
    x86_jmp_rel32(c, otherwise, false);
    x86_bind(c, ours);
}

void jit_emit_landing(x86_code *c, const jit_arena *a, uint64_t app, isa_regs wanted)
{
    check_target(c, app, a->exec + a->indirect_miss);
    if (wanted & 1u << X86_RCX) x86_load(c, 8, X86_RCX, x86_gs(OFF_SLOT_RCX));
    if (wanted & 1u << X86_RDX) x86_load(c, 8, X86_RDX, x86_gs(OFF_SLOT_RDX));
}

/* Nobody passes the check any more: its constant is another, by a store of one byte, of an address that differs in the
 * low 16 bits, to which no entry of a table leads here. */
void jit_spoil_landing(uint8_t *landing, uint64_t app)
{
    enum { REX_W = 0x48, MOV_SIGNED = 0xc7 };
    unsigned constant = landing[0] != REX_W ? 1 : landing[1] == MOV_SIGNED ? 3 : 2; /* as x86_mov_ri has it */
    __atomic_store_n(&landing[constant], (uint8_t)(-app ^ 1), __ATOMIC_RELEASE);    /* as often as one likes */
}

/* Where a paired return comes: R11 is in its slot too, and the program's stack pointer in it. */
void jit_emit_return_landing(x86_code *c, const jit_arena *a, uint64_t app)
{
    check_target(c, app, a->exec + a->return_miss);
    x86_mov_rr(c, 8, X86_RSP, X86_R11);
    x86_load(c, 8, X86_R11, x86_gs(OFF_SLOT_R11));
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SLOT_RCX));
    x86_load(c, 8, X86_RDX, x86_gs(OFF_SLOT_RDX));
}

/* The check in front of a body, for each piece of 8, 4, 2 or 1 bytes of the program's code:
 *
 *          mov rdx, -(what was translated) ; mov rcx, [the program's code]
 *          lea rcx, [rcx + rdx] ; jrcxz next ; jmp stale
 *
 * Everything but rcx and rdx, which wait in their slots, is the program's own; so a fault here has the context
 * of one in the landing. */
size_t jit_emit_check_begin(x86_code *c, uint64_t app, bool continues)
{
    x86_store(c, 8, x86_gs(OFF_SLOT_RCX), X86_RCX);
    x86_store(c, 8, x86_gs(OFF_SLOT_RDX), X86_RDX);
    x86_label past = x86_jmp_label(c, 1);
    size_t stale = c->at;
    x86_store_imm(c, 4, x86_gs(CTX_PC), (int32_t)app);
    x86_store_imm(c, 4, x86_gs(CTX_PC + 4), (int32_t)(app >> 32));
    x86_store_imm(c, 8, x86_gs(OFF_LEAVE), RUN_LEAVE_STALE);
    x86_store_imm(c, 8, x86_gs(OFF_LEAVE_ARG), continues);
    jit_emit_check_end(c);
    x86_jmp_m(c, x86_gs(OFF_DISPATCH_ENTRY));
    x86_bind(c, past);
    return stale;
}

static void check_piece(x86_code *c, size_t stale, const uint8_t *bytes, uint64_t app, unsigned w)
{
    uint64_t value = 0;
    memcpy(&value, bytes, w);
    x86_mov_ri(c, X86_RCX, app);
    x86_load(c, w, X86_RCX, x86_at(X86_RCX, 0));
    x86_mov_ri(c, X86_RDX, -value);
    x86_lea(c, X86_RCX, x86_indexed(X86_RCX, X86_RDX, 1, 0));
    x86_label next = x86_jrcxz_label(c);
    x86_jmp_to(c, c->exec + stale);
    x86_bind(c, next);
}

void jit_emit_check(x86_code *c, size_t begin, const uint8_t *bytes, uint64_t app, uint64_t size)
{
    uint64_t at = 0;
    for (; size - at >= 8; at += 8) check_piece(c, begin, bytes + at, app + at, 8);
    if (at && at < size) { /* once more, what is behind it included */
        check_piece(c, begin, bytes + size - 8, app + size - 8, 8);
        return;
    }
    for (unsigned w = 4; w; w /= 2) {
        if (size - at < w) continue;
        check_piece(c, begin, bytes + at, app + at, w);
        at += w;
    }
}

void jit_emit_check_end(x86_code *c)
{
    x86_load(c, 8, X86_RCX, x86_gs(OFF_SLOT_RCX));
    x86_load(c, 8, X86_RDX, x86_gs(OFF_SLOT_RDX));
}

const isa_regs jit_landing_spills = 1u << X86_RCX | 1u << X86_RDX;

bool jit_patch(uint8_t *where, uint64_t at, uint64_t target) { return x86_patch_rel32(where, at, target); }

void jit_emit_jump(isa_code *c, uint64_t target) { x86_jmp_rel32(c, target, false); }
