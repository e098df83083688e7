/* A thread's slot in the parking area: the frame that rt_sigreturn restores it from, at any moment and by itself. */
#include "isa/x86_64/xstate.h"
#include "live/remote.h"
#include "move/live.h"
#include "run/x86_64/abi.h"

#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>

enum { SW_RESERVED = 464, UC_XSTATE = 1, UC_SS = 2, STRICT_SS = 4, NO_CHANGE = 0x7f, LAST_WORD = 4 };

extern const uint8_t live_park_code[], live_park_code_end[];

const uint8_t *remote_park_code(size_t *size)
{
    *size = (size_t)(live_park_code_end - live_park_code);
    return live_park_code;
}

enum { PARK_LOW = MOVE_PARK_FROM_TOOL & 0xff000000, PARK_HIGH = MOVE_PARK_FROM_TOOL >> 32 };
/* mov $39, %eax; syscall; movabs $MOVE_PARK_FROM_TOOL, %rax; jmp *%rax */
const uint8_t remote_tail[] = {0xb8,           39,   0, 0,    0,   0x0f,           0x05,
                               0x48,           0xb8, 0, 0,    0,   PARK_LOW >> 24, PARK_HIGH & 0xff,
                               PARK_HIGH >> 8, 0,    0, 0xff, 0xe0};
const size_t remote_tail_size = sizeof remote_tail, remote_tail_until = 7;
_Static_assert(offsetof(move_park, child) == MOVE_PARK_CHILD && offsetof(move_park, gone) == MOVE_PARK_GONE &&
                   offsetof(move_park, vanishes) == MOVE_PARK_VANISHES &&
                   offsetof(move_park, action) == MOVE_PARK_ACTION,
               "known to assembly");
_Static_assert((MOVE_PARK_FROM_TOOL & 0xffffff) == 0 && MOVE_PARK_FROM_TOOL >> 48 == 0, "put together there");

/* The ways that the C libraries have to rt_sigreturn. */
const remote_pattern remote_returns[] = {
    {9, {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05}}, {7, {0xb8, 15, 0, 0, 0, 0x0f, 0x05}}, {0}};

size_t remote_slot_size(void) { return MOVE_SLOT_VECTORS + x86_xstate_size(x86_xstate_here(), ~0ull) + LAST_WORD; }

/* Tiles, which must be asked for, are in a frame only of who has used them. */
static uint64_t framed(const uint8_t *state)
{
    uint64_t used;
    memcpy(&used, state + X86_XSAVE_LEGACY, sizeof used);
    return x86_xstate_here()->features & (~X86_XSAVE_DYNAMIC | used);
}

/* What the kernel has given in XSAVE's standard form, with the words that it looks for in a frame. */
static void put_vectors(uint8_t *to, const uint8_t *state, size_t size)
{
    uint32_t last = FP_XSTATE_MAGIC2;
    const uint64_t features = framed(state);
    const uint32_t bytes = x86_xstate_size(x86_xstate_here(), features);
    struct _fpx_sw_bytes sw = {
        .magic1 = FP_XSTATE_MAGIC1, .extended_size = bytes + LAST_WORD, .xstate_bv = features, .xstate_size = bytes};
    memcpy(to, state, size < bytes ? size : bytes);
    memcpy(to + SW_RESERVED, &sw, sizeof sw);
    memcpy(to + bytes, &last, sizeof last);
}

inl_status remote_slot_make(remote *r, uint64_t at, void *bytes, inl_error *e)
{
    const struct user_regs_struct *u = &r->regs;
    weave_context c;
    void *vectors = NULL;
    size_t size = 0;
    inl_status s = remote_vectors(r, &vectors, &size, e);
    if (s != INL_OK) return s;
    memset(bytes, 0, remote_slot_size());
    put_vectors((uint8_t *)bytes + MOVE_SLOT_VECTORS, vectors, size);
    free(vectors);
    move_park_slot slot = {.is_first = r->is_first, .tls_base = u->fs_base, .gs_base = u->gs_base};
    slot.restarts = r->restarts;
    run_frame *f = &slot.frame;
    f->flags = UC_XSTATE | UC_SS | STRICT_SS;
    f->stack.ss_flags = NO_CHANGE; /* refused, and that is not asked after */
    f->mask = r->sigmask;
    remote_context(r, &c);
    for (unsigned k = 0; k < 16; k++) f->mc.gregs[run_frame_place(k)] = (greg_t)c.gpr[k];
    if (u->rax == SYS_restart_syscall && r->restarts) f->mc.gregs[REG_RAX] = (greg_t)r->restarts;
    f->mc.gregs[REG_RIP] = (greg_t)c.pc;
    f->mc.gregs[REG_EFL] = (greg_t)c.flags;
    f->mc.gregs[REG_CSGSFS] = (greg_t)(u->cs | u->ss << 48);
    f->mc.fpregs = (fpregset_t)(at + MOVE_SLOT_VECTORS);
    memcpy(bytes, &slot, sizeof slot);
    return INL_OK;
}

inl_status remote_slot_vectors(remote *r, inl_error *e)
{
    void *vectors = NULL;
    size_t size = 0;
    inl_status s = remote_vectors(r, &vectors, &size, e);
    uint8_t *state = vectors, *there = s == INL_OK ? malloc(size) : NULL;
    if (s == INL_OK && !there) s = inl_fail(e, INL_ERR_NO_MEMORY, "out of memory");
    size_t kept = s == INL_OK ? x86_xstate_size(x86_xstate_here(), framed(state)) : 0;
    if (kept > size) kept = size;
    if (s == INL_OK) s = remote_read(r, r->slot + MOVE_SLOT_VECTORS, there, kept, e);
    if (s == INL_OK) {
        memcpy(state + MOVE_VECTORS_LOW, there + MOVE_VECTORS_LOW, MOVE_VECTORS_LOW_END - MOVE_VECTORS_LOW);
        if (kept > MOVE_VECTORS_HIGH)
            memcpy(state + MOVE_VECTORS_HIGH, there + MOVE_VECTORS_HIGH, kept - MOVE_VECTORS_HIGH);
        s = remote_set_vectors(r, state, size, e);
    }
    free(vectors);
    free(there);
    return s;
}

/* As the kernel would have it at a handler's end. `from` is one of remote_returns. */
void remote_registers_return(struct user_regs_struct *u, uint64_t from, uint64_t slot)
{
    remote_registers_jump(u, from, slot + MOVE_SLOT_CONTEXT);
}

/* The thread is about to make that call: another is made in its place, and then that. */
void remote_registers_instead(struct user_regs_struct *u, uint64_t from, long nr, const long args[6])
{
    uint64_t sp = u->rsp;
    remote_registers_call(u, from, nr, args);
    u->orig_rax = (unsigned long)nr;
    u->rsp = sp;
}

uint64_t remote_below_stack(const struct user_regs_struct *u, size_t size)
{
    return (u->rsp - RUN_RED_ZONE - size) & ~63ull;
}
