/* Restartable sequences (rseq). The program registers an area of its own for each thread, in which the kernel keeps
 * the processor's number, and stores there the address of a descriptor in front of each critical section:
 *
 *     version, flags | first instruction | length | abort handler      (a signature stands in front of the handler)
 *
 * When a thread has been preempted, moved to another processor or sent a signal, the kernel looks there. Does the
 * thread stand in the section, then it goes on at the abort handler; otherwise the kernel stores 0, for the section is
 * over. Translated code never stands there. So:
 *
 *     registered    the program's own area, as it asked: what it reads there comes from the kernel.
 *     armed         who enters a section whose descriptor the program has stored puts the descriptor of the thread's
 *                   block (jit_own.rseq) in its place. From then on the area holds that one exactly as long as nothing
 *                   has interrupted the thread: the kernel itself takes it out.
 *     guarded       each instruction of the section that accesses memory looks whether it still stands there, with the
 *                   thread's descriptor describing the piece of code from that look to the instruction's end. An
 *                   interruption in between leads to the thread's abort code, by the kernel's hand; one before it is
 *                   seen by the look. So none is executed that would not be natively, and those before it have been.
 *     left          whoever leaves a section looks once more, but for the instruction at its end.
 *
 * At an abort the program goes on at its handler, with the registers of the instruction that was not executed; what was
 * counted for it in advance is taken back. The area's pointer is 0 then, as natively.
 *
 *                                 entry (from outside)        guard          exit
 *     program's pointer in area   descriptor -> the thread's  the thread's?  the thread's?     no: abort
 *
 * A thread that comes to code of a section without its descriptor runs it as any other code (section is NULL then).
 * Where it comes to the first instruction and the pointer is 0, the kernel has interrupted it between the program's
 * store and here, which is to say before the section: it is armed.
 *
 * Which code is a section is known before it is translated: instructions that make or store the address of a descriptor
 * tell (jit_sections_named), and what a thread's area holds when it comes to the dispatcher. Runs neither begin outside
 * and go on inside nor the other way round. Whoever keeps translations beyond a process must leave out those of
 * sections (they hold addresses of this one's structures), and have a look (jit_sections_see) at the addresses that the
 * instructions of those which it brings back name. */
#include "jit/core.h"
#include "run/kernel.h"
#include "weave/isa.h"
#include INL_ARCH_HEADER(run, abi)

#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "base/log.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"

enum { UNREGISTER = 1, LONGEST = 1 << 20, ALIGNED = 8, SIGNATURE = 4, POINTER_AT = 8 };

typedef struct descriptor {
    uint32_t version, flags;
    uint64_t start, length, abort;
} descriptor;

/* --- which code --- */

const jit_section *jit_section_at(uint64_t app)
{
    if (app - jit.sections.low >= jit.sections.high - jit.sections.low) return NULL;
    for (size_t i = 0; i < jit.sections.all.count; i++) {
        const jit_section *s = jit.sections.all.items[i];
        if (!s->gone && app >= s->low && app < s->high) return s;
    }
    return NULL;
}

static const jit_section *of_descriptor(uint64_t address)
{
    for (size_t i = 0; i < jit.sections.all.count; i++) {
        const jit_section *s = jit.sections.all.items[i];
        if (!s->gone && s->descriptor == address) return s;
    }
    return NULL;
}

static bool is_known(uint32_t signature)
{
    for (unsigned i = 0; i < jit.sections.signature_count; i++)
        if (jit.sections.signatures[i].value == signature) return true;
    return signature == JIT_USUAL_SIGNATURE;
}

static bool is_code(uint64_t address) { return jit_memory_prot(address) & PROT_EXEC; }

static bool describes(const descriptor *d)
{
    uint32_t signature;
    if (d->version || d->flags || !d->length || d->length > LONGEST || d->start + d->length < d->start) return false;
    if (d->abort - d->start < d->length || !is_code(d->start) || !is_code(d->abort)) return false;
    return run_read(&signature, d->abort - SIGNATURE, sizeof signature) && is_known(signature);
}

static void forget(jit_section *s)
{
    s->gone = true;
    jit_drop_range(s->low, s->high);
}

static void add(uint64_t address, const descriptor *d)
{
    jit_section *s = malloc(sizeof *s);
    if (!s || !inl_vec_push(&jit.sections.all, s)) {
        free(s);
        return;
    }
    *s = (jit_section){address, d->start, d->start + d->length, d->abort, false};
    if (jit.sections.all.count == 1) jit.sections.low = UINT64_MAX;
    if (s->low < jit.sections.low) jit.sections.low = s->low;
    if (s->high > jit.sections.high) jit.sections.high = s->high;
    jit_drop_range(s->low, s->high);
    inl_log(INL_LOG_TRANSLATE, "restartable sequence %#lx..%#lx, aborts to %#lx", (long)s->low, (long)s->high,
            (long)s->abort);
}

void jit_sections_see(uint64_t address)
{
    descriptor d;
    /* Most are numbers; a fault costs more than a look. */
    if (address % ALIGNED || !jit_memory_is_known(address)) return;
    if (!run_read(&d, address, sizeof d) || !describes(&d)) return;
    jit_section *s = (jit_section *)of_descriptor(address);
    if (s && s->low == d.start && s->high == d.start + d.length && s->abort == d.abort) return;
    if (s) forget(s);
    add(address, &d);
}

void jit_sections_named(const isa_insn *in)
{
    uint64_t address = jit_section_named(in);
    if (address) jit_sections_see(address);
}

void jit_sections_unmapped(uint64_t low, uint64_t high)
{
    for (size_t i = 0; i < jit.sections.all.count; i++) {
        jit_section *s = jit.sections.all.items[i];
        bool touched = s->descriptor - low < high - low || (s->low < high && s->high > low);
        if (!s->gone && touched) forget(s);
    }
}

void jit_sections_end(void)
{
    for (size_t i = 0; i < jit.sections.all.count; i++) free(jit.sections.all.items[i]);
    inl_vec_free(&jit.sections.all);
    for (unsigned i = 0; i < jit.sections.signature_count; i++) {
        uint64_t page = inl_page_down(jit.sections.signatures[i].abort_code);
        run_own_locked(page, page + INL_PAGE, false);
        sys_call2(SYS_munmap, (long)page, INL_PAGE);
    }
}

/* --- registration --- */

/* Where the kernel sends a thread whose signature this is; 0: it cannot be had. */
static uint64_t abort_code(uint32_t signature)
{
    unsigned n = jit.sections.signature_count;
    for (unsigned i = 0; i < n; i++)
        if (jit.sections.signatures[i].value == signature) return jit.sections.signatures[i].abort_code;
    if (n == JIT_SIGNATURES) return 0;
    long page = sys_call(SYS_mmap, (long)inl_region_take(INL_PAGE), INL_PAGE, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sys_failed(page)) return 0;
    run_own_locked((uint64_t)page, (uint64_t)page + INL_PAGE, true);
    isa_code c = {.write = (uint8_t *)page, .exec = (uint64_t)page, .size = INL_PAGE};
    isa_put(&c, &signature, sizeof signature);
    uint64_t code = isa_here(&c);
    jit_emit_section_abort(&c);
    sys_call3(SYS_mprotect, page, INL_PAGE, PROT_READ | PROT_EXEC);
    bool is_new = !is_known(signature); /* what has been translated named perhaps a section of this kind */
    jit.sections.signatures[n] = (jit_signature){signature, code};
    jit.sections.signature_count = n + 1;
    if (is_new) jit_flush_all();
    return code;
}

bool jit_sections_abort_code(uint64_t pc)
{
    for (unsigned i = 0; i < jit.sections.signature_count; i++)
        if (inl_page_down(pc) == inl_page_down(jit.sections.signatures[i].abort_code)) return true;
    return false;
}

/* Memory that is registered anew may hold a pointer that a thread which has ended left there. */
static void clear_pointer(uint64_t field)
{
    uint64_t now, none = 0;
    if (run_read(&now, field, sizeof now) && now && run_is_ours(now, now + 1)) run_write(field, &none, sizeof none);
}

static void take(jit_own *o, uint64_t field, uint32_t signature, uint64_t code)
{
    o->sequence = (jit_sequence){.abort = code};
    o->signature = signature;
    o->section = o->armed = NULL;
    o->sequence_self = (uint64_t)(uintptr_t)&o->sequence;
    o->sequence_minus = -o->sequence_self;
    o->sequence_field = field;
}

long jit_sequences(run_thread *t, const weave_context *c)
{
    uint64_t field = run_arg(c, 0) + POINTER_AT;
    uint32_t signature = (uint32_t)run_arg(c, 3);
    jit_own *o = jit_of(t);
    if ((int)run_arg(c, 2) & UNREGISTER) {
        long answer = run_pass(t, c);
        if (!answer) o->sequence_field = 0, o->section = NULL;
        return answer;
    }
    inl_lock_take(&run_here.lock);
    uint64_t code = abort_code(signature);
    inl_lock_release(&run_here.lock);
    if (!code) return -ENOMEM;
    if (!o->sequence_field) clear_pointer(field);
    long answer = run_pass(t, c);
    if (!answer) take(o, field, signature, code);
    return answer;
}

bool jit_sections_take(run_thread *t, uint64_t area, uint32_t signature)
{
    inl_lock_take(&run_here.lock);
    uint64_t code = abort_code(signature);
    inl_lock_release(&run_here.lock);
    if (code) take(jit_of(t), area + POINTER_AT, signature, code);
    return code != 0;
}

bool jit_sections_area_on(uint64_t page)
{
    for (const run_thread *t = run_here.threads; t; t = t->next) {
        uint64_t area = jit_of(t)->sequence_field - POINTER_AT;
        if (jit_of(t)->sequence_field && area < page + INL_PAGE && area + 2 * sizeof(descriptor) > page) return true;
    }
    return false;
}

/* --- a thread --- */

static bool is_in(const jit_section *s, uint64_t pc) { return s && pc >= s->low && pc < s->high; }

static uint64_t pointer(const jit_own *o)
{
    uint64_t value = 0;
    run_read(&value, o->sequence_field, sizeof value);
    return value;
}

/* As the kernel does it; ctx.pc is in the section, or just behind it. */
static void abort_section(run_thread *t)
{
    jit_own *o = jit_of(t);
    const jit_section *s = o->section;
    uint64_t none = 0;
    uint32_t signature = 0;
    o->section = NULL;
    o->sequence.start = 0;
    run_write(o->sequence_field, &none, sizeof none);
    __atomic_fetch_add(&jit.stats.aborted, 1, __ATOMIC_RELAXED);
    inl_log(INL_LOG_SIGNAL, "restartable sequence at %#lx is aborted", (long)s->low);
    if (run_read(&signature, s->abort - SIGNATURE, sizeof signature) && signature == o->signature) {
        t->ctx.pc = s->abort;
        return;
    }
    t->fault.info = (siginfo_t){.si_signo = SIGSEGV, .si_code = SI_KERNEL};
    t->fault.present = true;
}

/* Which section a thread is about to be in that comes from outside, by what the program has in its area; NULL: none. */
static const jit_section *coming(const jit_own *o, uint64_t pc)
{
    uint64_t now = pointer(o);
    const jit_section *here = jit_section_at(pc);
    if (!now) return here && here->low == pc ? here : NULL;
    const jit_section *s = of_descriptor(now == o->sequence_self && o->armed ? o->armed->descriptor : now);
    return is_in(s, pc) ? s : NULL;
}

void jit_sections_interrupted(run_thread *t)
{
    jit_own *o = jit_of(t);
    if (!o->sequence_field || !jit.sections.all.count) return;
    inl_lock_take(&run_here.lock);
    if (!is_in(o->section, t->ctx.pc)) o->section = coming(o, t->ctx.pc);
    if (o->section) abort_section(t);
    inl_lock_release(&run_here.lock);
}

bool jit_sections_leave(run_thread *t)
{
    jit_own *o = jit_of(t);
    uint64_t none = 0;
    jit_sections_interrupted(t);
    if (t->fault.present) return false;
    if (o->sequence_field && pointer(o) == o->sequence_self) run_write(o->sequence_field, &none, sizeof none);
    o->section = NULL;
    return true;
}

bool jit_sections_refused(const run_thread *t)
{
    const jit_own *o = jit_of(t);
    uint64_t now = o->sequence_field ? pointer(o) : 0;
    return now && now != o->sequence_self;
}

static void arm(jit_own *o, const jit_section *s)
{
    o->sequence.start = 0;
    run_write(o->sequence_field, &o->sequence_self, sizeof o->sequence_self);
    o->section = o->armed = s;
}

/* At the entry of a fragment in a section, where it was not clear at once. True: into it, as things are then. */
static bool enter(run_thread *t)
{
    jit_own *o = jit_of(t);
    uint64_t pc = t->ctx.pc;
    if (is_in(o->section, pc)) {
        if (pointer(o) == o->sequence_self) return true;
        abort_section(t);
        return false;
    }
    const jit_section *s = coming(o, pc);
    o->section = NULL;
    o->sequence.start = 0;
    if (s) arm(o, s);
    return true;
}

bool jit_sections_serve(run_thread *t)
{
    if (t->leave_arg >= JIT_SECTION_ENTERED) return enter(t);
    if (t->leave_arg == JIT_SECTION_ABORTED) jit_section_context(t, jit_of(t)->sequence.start);
    if (jit_of(t)->section) abort_section(t);
    return false;
}

void jit_sections_arrive(run_thread *t)
{
    jit_own *o = jit_of(t);
    uint64_t now = pointer(o);
    if (!now || now == o->sequence_self || now == o->sequence_seen) return;
    o->sequence_seen = now;
    jit_sections_see(now);
}

void jit_sections_depart(run_thread *t)
{
    jit_own *o = jit_of(t);
    if (o->section && !is_in(o->section, t->ctx.pc)) o->section = NULL;
}
