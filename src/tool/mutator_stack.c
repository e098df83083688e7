/* Frames of a process's thread, by the unwind tables of its images. Return addresses that lead to new code become those
 * of the calls that it was made from: there the frame is as it would be here. */
#include "tool/mutator.h"
#include "moved/moved.h"
#include "tool/stack.h"
#include "tool/wrap.h"

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

static bool read_process(void *of, void *to, uint64_t from, size_t size)
{
    mutatee *m = of;
    return inlay_process_read(&m->process, to, from, size) == size;
}

static stack_code code_there(void *of, uint64_t shown)
{
    const mutatee *m = of;
    const module *x = module_at(m->modules, shown);
    return x ? (stack_code){x->image, x->bias} : (stack_code){0};
}

static uint64_t call_there(void *of, uint64_t back) { return call_before(of, back); }

/* What a signal's handler sees is of old code. */
static uint64_t shown_there(void *of, uint64_t real)
{
    (void)of;
    return real;
}

/* Who has called what returns to no code of the program's. It may be any thread that stands there: no two have the same
 * place on their stacks. */
static stack_passed pass_there(const stack_process *p, uint64_t back, uint64_t stack, stack_caller *out)
{
    enum { MOST = 1 << 20 };
    const mutatee *m = p->of;
    run_thread *at = NULL, block;
    stack_passed passed = STACK_PASSED_NOT;
    if (!m->has_tool || module_at(m->modules, call_before(m, back)) ||
        !p->read(p->of, &at, (uintptr_t)&run_here.threads, sizeof at))
        return passed;
    for (int n = 0; at && n < MOST && passed == STACK_PASSED_NOT; n++, at = block.next) {
        if (!p->read(p->of, &block, (uintptr_t)at, sizeof block)) break;
        passed = tool_wrap_passes(p, block.calls, stack, out);
    }
    return passed;
}

unsigned mutator_stack(inlay_process *p, const inlay_context *c, inlay_stack_frame *out, unsigned most)
{
    mutatee *m = mutatee_of(p);
    const stack_process there = {m, read_process, code_there, call_there, shown_there, pass_there};
    return m ? stack_walk(&there, c, out, most) : 0;
}
