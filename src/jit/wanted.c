/* What code wants of the registers and flags that it is entered with: so that what stands in front of an exit may
 * destroy the rest.
 *
 * Asked of an address, the next instructions are looked at, at most INSNS of them and over at most BRANCHES forks on
 * each way: what all ways overwrite before they read it is *dead*. It depends on nothing but the program's bytes, and
 * so
 *
 *  - what is dead at X and is not overwritten on the way to Y is dead at Y, since from Y no more is looked at than from
 *    X. (Else a value that is missing at X could count as one that is there at Y.)
 *  - it goes when these bytes could change: only code in a file's image is looked at, which nobody can write to, and
 *    with a page that has been looked at and is mapped or protected otherwise everything is translated anew.
 *
 * A handler of the program's sees all registers and flags, dead or not. There are two ways into one:
 *
 *  - A signal that was sent waits for the end of a fragment. What may be missing there is dead, so the thread *settles*
 *    before it is told: it goes on, by pieces of straight code whose translations lead nowhere, until all of that has
 *    been overwritten. That takes no system call, no indirect branch and no long time: it was seen beforehand.
 *  - A fault is where the instruction is. As long as the program has no handler for any of those signals it dies of
 *    them, and nobody looks: then what is dead need not be kept over instructions that may fault (`hides`). With its
 *    first such handler everything is translated anew, and a value is dead only if no fault comes before it is
 *    overwritten. (Threads that are in code made before come out of it at their next exit.)
 *
 * A translation that is to be kept depends on what was looked at as on its own bytes: that is noted (jit.now.looks),
 * kept with it, and compared when it is taken (kept.c), which only happens while the same may be relied on.
 *
 * A tool could look, too. Whether it can is known from what it is linked with (tool/reads.c). A debugger does; none of
 * this is done then, nor in restartable sequences and code that is checked.
 */
#include "jit/core.h"
#include "run/kernel.h"
#include "weave/isa.h"

#include <string.h>

enum { INSNS = 12, BRANCHES = 1 };

typedef struct need {
    uint64_t regs;
    uint32_t flags;
} need;

typedef struct look {
    const module *m;
    uint64_t page; /* the last one that could be looked at */
    bool hides;
} look;

static need join(need a, need b) { return (need){a.regs | b.regs, a.flags | b.flags}; }
static need without(need a, need b) { return (need){a.regs & ~b.regs, a.flags & ~b.flags}; }
static need both(need a, need b) { return (need){a.regs & b.regs, a.flags & b.flags}; }
static bool is_none(need n) { return !n.regs && !n.flags; }

static need everything(void)
{
    const weave_isa *w = weave_isa_of(jit.isa);
    return (need){w->all, w->flags};
}

/* The run in the making relies on these bytes. */
static void note(uint64_t low, uint64_t high)
{
    jit_translation *now = &jit.now;
    for (unsigned i = 0; i < now->look_count; i++) {
        jit_extent *x = &now->looks[i];
        if (low > x->high || high < x->low) continue;
        if (low < x->low) x->low = low;
        if (high > x->high) x->high = high;
        return;
    }
    if (now->look_count == JIT_LOOKS) now->looks_full = true;
    else now->looks[now->look_count++] = (jit_extent){low, high};
}

/* Code that stays as it is; noted, for the day on which it does not. */
static bool is_steady(look *l, uint64_t at)
{
    uint64_t page = at >> 12;
    if (jit_section_at(at) || at < l->m->low || at >= l->m->high) return false;
    if (page == l->page) return true;
    if (!jit_memory_is_fixed(at, at + 1) || !inl_map_put(&jit.wanted.looked, page, 1)) return false;
    l->page = page;
    return true;
}

static bool decode(look *l, uint64_t at, isa_insn *in)
{
    uint64_t end = (at | 4095) + 1;
    if (!is_steady(l, at)) return false;
    isa_result r = jit.isa->decode((const uint8_t *)at, end - at, at, in);
    if (r == ISA_TRUNCATED && is_steady(l, end))
        r = jit.isa->decode((const uint8_t *)at, end - at + ISA_MAX_INSN, at, in);
    if (r != ISA_OK || in->bits & ISA_BIT_UNKNOWN) return false;
    if (jit.now.notes_looks) note(at, at + in->len);
    return true;
}

/* Of `open`, what code at `at` wants. */
static need wants(look *l, uint64_t at, need open, unsigned insns, unsigned branches)
{
    need found = {0, 0};
    isa_insn in;
    for (; insns && !is_none(open); insns--) {
        if (!decode(l, at, &in)) break;
        const weave_isa *w = weave_isa_of(jit.isa);
        weave_fx fx = weave_effects(w, &in);
        if (!l->hides && (weave_may_fault(w, &in) || in.flow == ISA_FLOW_CALL)) break;
        found = join(found, both(open, (need){fx.reads, fx.flags_read}));
        open = without(open, join(found, (need){fx.kills, fx.flags_kill}));
        at += in.len;
        if (in.flow == ISA_FLOW_NEXT) continue;
        if (in.flow == ISA_FLOW_JUMP || in.flow == ISA_FLOW_CALL) {
            at = in.target;
        } else if ((in.flow == ISA_FLOW_COND || in.flow == ISA_FLOW_COND_REG) && branches) {
            need taken = wants(l, in.target, open, insns - 1, branches - 1);
            return join(found, join(taken, wants(l, at, without(open, taken), insns - 1, branches - 1)));
        } else {
            break;
        }
    }
    return join(found, open);
}

static need look_at(uint64_t at, bool hides)
{
    look l = {.m = module_at(run_here.modules, at), .hides = hides};
    return l.m && !l.m->is_vdso ? wants(&l, at, everything(), INSNS, BRANCHES) : everything();
}

/* The same, with what has been found before. */
static need wanted_at(uint64_t at)
{
    jit_want *known = &jit.wanted.known[(at ^ at >> 12) % JIT_WANTS];
    if (jit.now.notes_looks) return look_at(at, jit.wanted.hides);
    if (known->at == at && at) return (need){known->regs, known->flags};
    need n = look_at(at, jit.wanted.hides);
    *known = (jit_want){at, n.regs, n.flags};
    return n;
}

/* Is the run in the making in the same module? Only then does it go when that goes. */
static bool stays_with(uint64_t at)
{
    const module *m = jit.now.build.module;
    return m && at >= m->low && at < m->high;
}

static void at_target(void *build, uint64_t target, uint64_t *regs, uint32_t *flags)
{
    (void)build;
    need n = stays_with(target) ? wanted_at(target) : everything();
    *regs = n.regs;
    *flags = n.flags;
}

/* Behind a call: where it leads to. */
static void behind(void *build, const weave_run *run, uint32_t i, uint64_t *regs, uint32_t *flags)
{
    const isa_insn *in = &run->insns[i].in;
    at_target(build, in->flow == ISA_FLOW_CALL ? in->target : 0, regs, flags);
}

/* --- when --- */

static bool handles_faults(const run_signals *s)
{
    for (int signo = 1; s && signo <= 64; signo++)
        if (RUN_BIT(signo) & RUN_FAULTS && s->action[signo].handler != RUN_DEFAULT &&
            s->action[signo].handler != RUN_IGNORE)
            return true;
    return false;
}

void jit_wanted_begin(void)
{
    const jit_options *o = &jit.options;
    jit.wanted.on = !o->shows && !o->debugger.stopped && !o->made && !(o->weave.stress & WEAVE_STRESS_NO_DEAD);
    jit.wanted.used = jit.wanted.on;
    jit.wanted.hides = jit.wanted.on && !run_here.client.signal && !handles_faults(run_here.signals);
}

void jit_wanted_end(void) { inl_map_free(&jit.wanted.looked); }

void jit_wanted_clear(void)
{
    memset(jit.wanted.known, 0, sizeof jit.wanted.known);
    inl_map_clear(&jit.wanted.looked);
}

void jit_wanted_handled(void)
{
    inl_lock_take(&run_here.lock);
    if (jit.wanted.hides) {
        jit.wanted.hides = false;
        jit_flush_all();
    }
    inl_lock_release(&run_here.lock);
}

void jit_wanted_stop(void)
{
    if (!jit.wanted.on) return;
    jit.wanted.on = jit.wanted.hides = false;
    jit_flush_all();
}

/* A module that goes as a whole takes with it whoever relied on it. */
void jit_wanted_changed(uint64_t low, uint64_t high)
{
    size_t at = 0;
    uint64_t page;
    if (!jit.wanted.looked.count) return;
    while (inl_map_next(&jit.wanted.looked, &at, &page, NULL)) {
        if (page < low >> 12 || page > (high - 1) >> 12) continue;
        const module *m = module_at(run_here.modules, page << 12);
        if (m && m->low >= low && m->high <= high) continue;
        jit_flush_all();
        return;
    }
}

/* --- the run in the making --- */

static bool is_steady_run(void)
{
    for (unsigned i = 0; i < jit.now.extent_count; i++)
        if (!jit_memory_is_fixed(jit.now.extents[i].low, jit.now.extents[i].high)) return false;
    for (uint32_t i = 0; i < jit.now.run.insn_count; i++)
        if (jit_step_sets(&jit.now.insns[i].in)) return false; /* as if it faulted, and the program goes on */
    return true;
}

/* Without anything inserted nothing but what a landing loads depends on it, and looking at code costs more. */
static bool has_inserts(const weave_run *run)
{
    for (uint32_t i = 0; i < run->block_count; i++)
        if (run->blocks[i].anywhere.first || run->blocks[i].entry.first) return true;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *n = &run->insns[i];
        if (n->before.first || n->after.first || n->taken.first) return true;
    }
    return false;
}

void jit_wanted_weave(weave_engine *engine, bool keep)
{
    jit_build *b = &jit.now.build;
    jit.now.look_count = 0;
    jit.now.looks_full = false;
    jit.now.notes_looks = keep;
    bool asks = jit.wanted.on && !b->once && !b->step && !b->checked && !b->section && !b->told_by &&
                has_inserts(&jit.now.run);
    b->module = asks ? module_at(run_here.modules, jit.now.insns[0].in.addr) : NULL;
    engine->live_at = asks ? at_target : NULL;
    engine->live_behind = asks ? behind : NULL;
    jit.options.weave.hide_dead = asks && jit.wanted.hides && is_steady_run();
}

void jit_wanted_woven(void) { jit.now.notes_looks = false; }

bool jit_wanted_relied(uint64_t low, uint64_t high)
{
    for (uint64_t page = low >> 12; page <= (high - 1) >> 12; page++)
        if (!inl_map_put(&jit.wanted.looked, page, 1)) return false;
    return true;
}

isa_regs jit_wanted_at_entry(isa_regs open)
{
    const weave_isa *w = weave_isa_of(jit.isa);
    const weave_run *run = &jit.now.run;
    isa_regs found = 0;
    uint64_t exit;
    uint32_t flags;
    if (!jit.now.build.module) return open;
    for (uint32_t i = 0; i < run->insn_count && open; i++) {
        const isa_insn *in = &run->insns[i].in;
        weave_fx fx = weave_effects(w, in);
        if (!jit.options.weave.hide_dead && (weave_may_fault(w, in) || in->flow == ISA_FLOW_CALL)) return found | open;
        found |= fx.reads & open;
        open &= ~(found | fx.kills);
        if (in->flow == ISA_FLOW_NEXT || run->insns[i].elided) continue;
        bool forks = in->flow == ISA_FLOW_COND || in->flow == ISA_FLOW_COND_REG;
        if (!forks && in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_CALL) return found | open;
        at_target(NULL, in->target, &exit, &flags);
        found |= exit & open;
        open &= ~found;
        if (!forks) return found;
    }
    const isa_insn *last = &run->insns[run->insn_count - 1].in;
    at_target(NULL, last->addr + last->len, &exit, &flags);
    return found | (open & exit);
}

isa_regs jit_wanted_by_landing(uint64_t app, isa_regs of) { return jit.wanted.on ? wanted_at(app).regs & of : of; }

/* --- settling; lock held --- */

void jit_settle_left(run_thread *t, uint64_t target)
{
    jit_settling *s = &jit_of(t)->settling;
    need all = everything();
    s->regs = s->on ? s->rest_regs : all.regs;
    s->flags = s->on ? s->rest_flags : all.flags;
    s->on = false;
    s->at = target;
}

void jit_settle_again(run_thread *t) { jit_of(t)->settling.on = false; }

void jit_settle_none(run_thread *t) { jit_of(t)->settling = (jit_settling){0}; }

bool jit_settle_due(run_thread *t)
{
    jit_settling *s = &jit_of(t)->settling;
    if (!s->at || s->at != t->ctx.pc || t->fault.present || !jit.wanted.used) return false;
    need missing = both((need){s->regs, s->flags}, without(everything(), look_at(s->at, true)));
    s->regs = missing.regs;
    s->flags = missing.flags;
    if (is_none(missing)) s->at = 0;
    return s->at;
}

unsigned jit_settle_length(run_thread *t)
{
    const jit_settling *s = &jit_of(t)->settling;
    need left = {s->regs, s->flags};
    uint64_t at = s->at;
    look l = {.m = module_at(run_here.modules, at)};
    isa_insn in;
    unsigned n = 0;
    if (!l.m) return 0;
    while (n < INSNS && !is_none(left) && decode(&l, at, &in)) {
        weave_fx fx = weave_effects(weave_isa_of(jit.isa), &in);
        left = without(left, (need){fx.kills, fx.flags_kill});
        at += in.len;
        n++;
        if (in.flow != ISA_FLOW_NEXT) break;
    }
    return n;
}

void jit_settle_begin(run_thread *t)
{
    jit_settling *s = &jit_of(t)->settling;
    const weave_isa *w = weave_isa_of(jit.isa);
    s->on = t->pending.passes = true;
    s->rest_regs = s->regs;
    s->rest_flags = s->flags;
    for (uint32_t i = 0; i < jit.now.run.insn_count; i++) {
        weave_fx fx = weave_effects(w, &jit.now.insns[i].in);
        s->rest_regs &= ~fx.kills;
        s->rest_flags &= ~fx.flags_kill;
    }
}
