/* Frames of a process's thread, by the unwind tables of its images. Return addresses that lead to new code become those
 * of the calls that it was made from: there the frame is as it would be here. */
#include "tool/mutator.h"
#include "tool/trace.h"

#include <inlay/stack.h>
#include <inlay/process.h>

static bool old_place(const mutator_piece *p, uint64_t at, uint64_t *old)
{
    for (; p; p = p->next) {
        if (at - p->plan->text_addr >= p->plan->text_size) continue;
        *old = move_old_address(p->plan, (assumed_addr){at}).at;
        return *old != 0;
    }
    return false;
}

/* Procedures that have moved for good (finders). */
static bool old_fixed(const mutatee *m, uint64_t at, uint64_t *old)
{
    for (const mutated_image *i = m->images; i; i = i->next) {
        if (!i->fixed || at - i->fixed->text_addr >= i->fixed->text_size) continue;
        *old = move_old_address(i->fixed, (assumed_addr){at}).at;
        return *old != 0;
    }
    return false;
}

/* Of the call in front of a return address. */
static uint64_t call_before(const mutatee *m, uint64_t back)
{
    uint64_t old;
    if (old_place(m->pieces, back - 1, &old) || old_place(m->dead, back - 1, &old) || old_fixed(m, back - 1, &old))
        return old;
    return back - 1;
}

static bool rules_at(const mutatee *m, uint64_t pc, image_saved *out)
{
    image_frame f;
    module *x = module_at(m->modules, pc);
    const image_unwind_range *r = x ? image_unwind_at(x->image, pc - x->bias) : NULL;
    return r && image_frame_code(x->image, r, &f) && image_frame_registers(&f, r->addr, pc - x->bias, out);
}

/* To the caller. */
static bool leave(mutatee *m, trace_registers *r, uint64_t *frame_end)
{
    image_saved saved;
    trace_registers caller = *r;
    if (!rules_at(m, r->pc, &saved)) return false;
    uint64_t cfa = r->value[saved.cfa_reg] + (uint64_t)saved.cfa_offset;
    for (unsigned i = 0; i < IMAGE_SAVED_REGS; i++) {
        uint64_t at = cfa + (uint64_t)(int64_t)saved.now.offset[i];
        if (saved.now.how[i] == IMAGE_SAVED_AT &&
            inlay_process_read(&m->process, &caller.value[i], at, sizeof at) != sizeof at)
            return false;
    }
    *frame_end = cfa;
    caller.value[trace_stack] = cfa;
    if (saved.now.how[trace_return] == IMAGE_SAVED_LOST || !caller.value[trace_return]) return false;
    caller.pc = call_before(m, caller.value[trace_return]);
    *r = caller;
    return true;
}

static bool registers_of(const mutatee *m, const inlay_context *c, trace_registers *out)
{
    const module *x = module_first(m->modules);
    const image_processor *set = x ? image_processor_of(x->image) : NULL;
    *out = (trace_registers){.pc = c->pc};
    for (unsigned i = 0; set && i < set->register_count; i++) out->value[i] = c->gpr[set->registers[i]];
    return set;
}

unsigned inlay_process_stack(inlay_process *p, const inlay_context *c, inlay_stack_frame *out, unsigned most)
{
    mutatee *m = mutatee_of(p);
    trace_registers r;
    unsigned n = 0;
    bool good = m && c && out && registers_of(m, c, &r);
    while (good && n < most) {
        uint64_t before = r.value[trace_stack];
        out[n] = (inlay_stack_frame){.address = r.pc};
        good = leave(m, &r, &out[n++].stack) && r.value[trace_stack] > before;
    }
    return n;
}
