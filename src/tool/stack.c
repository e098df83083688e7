/* Frames of a stack (stack.h): by unwind tables, and through the frames that the kernel makes for signals, which are
 * known by the code that they return to: not every C library describes that. */
#include "tool/stack.h"
#include "tool/state.h"
#include "tool/trace.h"
#include "tool/wrap.h"
#include "moved/moved.h"

#include <inlay/memory.h>
#include <inlay/process.h>

#include <string.h>
#include <ucontext.h>

/* --- from one frame to the next --- */

static bool rules_in(image *file, const image_unwind_range *r, uint64_t at, image_saved *out)
{
    image_frame f;
    return image_frame_code(file, r, &f) && image_frame_registers(&f, r->addr, at, out);
}

/* Tables compute what holds in import stubs, or say nothing. Before a stub's first jump or push it is what holds where
 * any procedure begins: the least that a few ranges of code have of the stack, since one may be of the stubs' own. */
static bool rules_of_stub(image *file, uint64_t at, image_saved *out)
{
    enum { MARK = 4, FEW = 32 }; /* bytes that say that an indirect branch may lead here */
    const image_proc *p = image_proc_at(file, at);
    const image_unwind_range *all;
    bool found = false;
    size_t n = p && p->source == IMAGE_PROC_PLT && at - p->addr <= MARK ? image_unwind_ranges(file, &all) : 0;
    for (size_t k = 0; k < n && k < FEW; k++) {
        image_saved one;
        bool good = rules_in(file, &all[k], all[k].addr, &one) && one.now.how[trace_return] != IMAGE_SAVED_LOST;
        if (!good || one.cfa_reg != trace_stack || (found && one.cfa_offset >= out->cfa_offset)) continue;
        *out = one;
        found = true;
    }
    return found;
}

static bool rules_at(const stack_process *p, uint64_t pc, image_saved *out)
{
    stack_code at = p->code_at(p->of, pc);
    const image_unwind_range *r = at.file ? image_unwind_at(at.file, pc - at.bias) : NULL;
    if (r && rules_in(at.file, r, pc - at.bias, out)) return true;
    return at.file && rules_of_stub(at.file, pc - at.bias, out);
}

/* Does a frame return to the end of a signal's handler? What stands there in memory may be a jump to where it has
 * moved, so the file is asked. */
static bool ends_handler(const stack_process *p, uint64_t back)
{
    uint64_t at = p->shown(p->of, back);
    stack_code code = p->code_at(p->of, at);
    const image_processor *set = code.file ? image_processor_of(code.file) : NULL;
    const uint8_t *bytes;
    size_t have = code.file ? image_bytes(code.file, at - code.bias, &bytes) : 0;
    return have && set && set->restores && set->restores(bytes, have);
}

/* To what a signal has interrupted: its registers lie where the handler's frame ends. */
static bool leave_handler(const stack_process *p, trace_registers *r)
{
    ucontext_t uc;
    size_t known = offsetof(ucontext_t, uc_mcontext) + sizeof uc.uc_mcontext;
    if (!p->read(p->of, &uc, r->value[trace_stack], known)) return false;
    trace_of_context(&uc, r);
    r->pc = p->shown(p->of, r->pc);
    return true;
}

static void take_registers(const stack_process *p, const inlay_context *c, trace_registers *r)
{
    stack_code at = p->code_at(p->of, c->pc);
    const image_processor *set = at.file ? image_processor_of(at.file) : NULL;
    r->pc = c->pc;
    for (unsigned i = 0; set && i < set->register_count; i++) r->value[i] = c->gpr[set->registers[i]];
}

static bool leave(const stack_process *p, trace_registers *r, inlay_stack_frame *frame, bool *interrupted)
{
    image_saved saved;
    stack_caller called;
    trace_registers caller = *r;
    if (!rules_at(p, r->pc, &saved)) return false;
    uint64_t cfa = r->value[saved.cfa_reg] + (uint64_t)saved.cfa_offset;
    for (unsigned i = 0; i < IMAGE_SAVED_REGS; i++) {
        uint64_t at = cfa + (uint64_t)(int64_t)saved.now.offset[i];
        if (saved.now.how[i] == IMAGE_SAVED_AT && !p->read(p->of, &caller.value[i], at, sizeof at)) return false;
    }
    uint64_t back = caller.value[trace_return];
    frame->stack = caller.value[trace_stack] = cfa;
    if (saved.now.how[trace_return] == IMAGE_SAVED_LOST) return false;
    stack_passed passed = p->passes(p, back, cfa, &called);
    if (passed == STACK_PASSED_CALL) back = called.back, caller.value[trace_stack] = called.stack;
    if (!back && passed != STACK_PASSED_SNIPPET) return false;
    *interrupted = passed == STACK_PASSED_SNIPPET || ends_handler(p, back);
    if (passed == STACK_PASSED_SNIPPET) take_registers(p, &called.at, &caller);
    else if (*interrupted && !leave_handler(p, &caller)) return false;
    else if (!*interrupted) caller.pc = p->call_before(p->of, back);
    *r = caller;
    return true;
}

/* Stacks grow downwards, but what a signal has interrupted may have another one. */
unsigned stack_walk(const stack_process *p, const inlay_context *c, inlay_stack_frame *out, unsigned most)
{
    trace_registers r = {0};
    unsigned n = 0;
    bool good = true, interrupted = false;
    take_registers(p, c, &r);
    while (good && n < most) {
        uint64_t before = r.value[trace_stack];
        out[n] = (inlay_stack_frame){.address = r.pc, .interrupted = interrupted};
        good = leave(p, &r, &out[n++], &interrupted) && (interrupted || r.value[trace_stack] > before);
    }
    return n;
}

/* --- the present process --- */

static bool read_here(void *of, void *to, uint64_t from, size_t size)
{
    (void)of;
    return inlay_memory_read(to, from, size) == size;
}

static stack_code code_here(void *of, uint64_t shown)
{
    (void)of;
    inlay_image *i = tool_image_at(shown);
    return i ? (stack_code){tool_image_file(i), i->bias} : (stack_code){0};
}

static uint64_t shown_here(void *of, uint64_t real)
{
    (void)of;
    return moved_original((real_addr){real}).at;
}

/* Where a call returns to is known of moved code, and the call itself is in front of that. */
static uint64_t call_here(void *of, uint64_t back) { return shown_here(of, back) - 1; }

/* Inlay's own memory. */
static bool read_own(void *of, void *to, uint64_t from, size_t size)
{
    (void)of;
    memcpy(to, (const void *)(uintptr_t)from, size);
    return true;
}

static stack_passed pass_here(const stack_process *p, uint64_t back, uint64_t stack, stack_caller *out)
{
    const stack_process own = {.of = p->of, .read = read_own};
    const run_thread *t = run_here.engine ? run_self() : NULL;
    (void)back;
    return t ? tool_wrap_passes(&own, t->calls, stack, out) : STACK_PASSED_NOT;
}

static unsigned walk_here(const inlay_context *c, inlay_stack_frame *out, unsigned most)
{
    const stack_process here = {NULL, read_here, code_here, call_here, shown_here, pass_here};
    bool entered = tool_enter();
    unsigned n = stack_walk(&here, c, out, most);
    tool_leave(entered);
    return n;
}

unsigned inlay_process_stack(inlay_process *p, const inlay_context *c, inlay_stack_frame *out, unsigned most)
{
    if (!p || !c || !out || !most) return 0;
    return p == inlay_process_self() ? walk_here(c, out, most) : mutator_stack(p, c, out, most);
}

/* --- where it is called --- */

bool inlay_context_now(inlay_context *out)
{
    run_thread *t = run_here.engine ? run_self() : NULL;
    bool known = t && out && (tool_here.asked || tool_wrap_caller(t, (weave_context *)out));
    if (known && tool_here.asked) {
        memcpy(out, tool_here.asked, sizeof *out);
        out->pc = moved_asked_at((real_addr){out->pc}).at;
    } else if (known) {
        out->pc = call_here(NULL, out->pc);
    } else {
        tool_say_limited("inlay_context_now is for callbacks of system calls and for routines that stand in for a "
                         "procedure");
    }
    return known;
}
