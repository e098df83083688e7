/* Frames of a process's thread, by the unwind tables of its images. Return addresses that lead to new code become those
 * of the calls that it was made from: there the frame is as it would be here. */
#include "tool/mutator.h"
#include "moved/moved.h"
#include "tool/trace.h"

#include <inlay/stack.h>
#include <inlay/process.h>

/* --- a thread --- */

/* False: `now` is within what has been inserted, where registers may be other ones. */
static bool at_instruction(const move_plan *p, uint64_t now, uint64_t *old)
{
    assumed_addr at = {now}, from = move_old_address(p, at);
    if (now - p->text_addr >= p->text_size || !from.at) return false;
    *old = from.at;
    return move_new_address(p, from, true).at == now || move_new_address(p, from, false).at == now;
}

static bool old_instruction(const mutatee *m, uint64_t now, uint64_t *old)
{
    for (const mutator_piece *p = m->pieces; p; p = p->next)
        if (at_instruction(p->plan, now, old)) return true;
    for (const mutator_piece *p = m->dead; p; p = p->next)
        if (at_instruction(p->plan, now, old)) return true;
    for (const mutated_image *i = m->images; i; i = i->next)
        if (i->fixed && at_instruction(i->fixed, now, old)) return true;
    return false;
}

static bool read_there(const void *of, const void *from, void *to, size_t size)
{
    return mutator_read_there(of, from, to, size);
}

/* A call of the program's that the gate makes is one in front of where it returns to. */
static bool leave_gate(const mutatee *m, const remote *r, weave_context *c)
{
    run_thread block;
    isa_regs junk;
    uint64_t behind;
    if (!mutator_thread_block(m, r->pid, &block)) return false;
    if (moved_settle_registers(&block, c) == MOVED_SETTLED_NOT) return false;
    if (!moved_gate_asks(c->pc, c, &behind, &junk)) return true;
    uint64_t call = moved_site_there(behind - 1, read_there, m);
    c->pc = call ? call + remote_syscall_size : behind;
    return true;
}

static bool as_in_old_code(const mutatee *m, weave_context *c)
{
    return module_at(m->modules, c->pc) || old_instruction(m, c->pc, &c->pc);
}

static inl_status take_context(mutatee *m, void *arg, void *answer, inl_error *e)
{
    const remote *r = mutator_thread(m, *(const int *)arg, e);
    weave_context *c = answer;
    if (!r) return INL_ERR_NOT_FOUND;
    remote_context(r, c);
    if (as_in_old_code(m, c) || (leave_gate(m, r, c) && as_in_old_code(m, c))) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED,
                    "thread %d of process %d is just in code that has been inserted: let it go on, and ask again",
                    r->pid, m->live.pid);
}

bool inlay_process_thread_context(inlay_process *p, int tid, inlay_context *out)
{
    mutatee *m = mutatee_of(p);
    inl_error e = {0};
    if (!m) return mutator_refuse(INL_ERR_USAGE, MUTATOR_NO_OTHER);
    if (!out) return mutator_refuse(INL_ERR_USAGE, "there is no context to be filled");
    return mutator_work(m, take_context, &tid, out, sizeof *out, &e) == INL_OK || mutator_fail(&e);
}

/* --- its frames --- */

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
