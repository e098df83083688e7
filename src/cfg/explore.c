/* Following code from the ways into it: every instruction that is reached gets its marks, and what it says
 * about other places becomes an event. Events take effect at once, unless the exploration is a trial
 * (code that is only guessed to be there): then they wait until the trial has made sense, and the marks
 * of one that has not are taken back. */
#include "cfg/work.h"

static void note(cfg_work *w, uint64_t addr, uint32_t flags)
{
    if (flags) cfg_keep(w, &w->notes, (cfg_note){addr, flags});
}

void cfg_enter(cfg_work *w, uint64_t addr, uint32_t flags)
{
    uint8_t *m = cfg_mark(w, addr);
    if (!m) return;
    if (flags & (CFG_BLOCK_OUTSIDE | CFG_BLOCK_LANDING)) *m |= MARK_ROOT;
    note(w, addr, flags);
    cfg_keep(w, &w->todo, addr);
}

/* --- events --- */

static void ask_for(cfg_work *w, uint64_t addr, cfg_wait wait, uint16_t flags, uint8_t source)
{
    uint8_t *m = wait.site ? cfg_mark(w, wait.site) : NULL;
    if (m) *m |= MARK_NORET; /* until somebody knows better */
    cfg_keep(w, &w->fresh, (cfg_fresh){addr, wait, flags, source});
}

/* Somebody goes to `to`: an entry, the middle of a procedure, or something new. */
static void go_to(cfg_work *w, const cfg_event *e, cfg_wait wait, uint16_t flags)
{
    uint8_t *m = cfg_mark(w, e->to);
    uint32_t number = m ? cfg_proc_near(w, e->to) : CFG_NONE;
    cfg_draft *p = number != CFG_NONE ? &w->procs.items[number] : NULL;
    if (!m) { /* outside the text: nothing is known of it */
        if (wait.site) cfg_keep(w, &w->todo, wait.site + wait.size);
        else if (wait.proc != CFG_NONE) cfg_returns(w, wait.proc);
    } else if (p && p->addr == e->to) {
        p->flags |= flags;
        cfg_wait_for(w, number, wait);
    } else if (p && cfg_inside(p, e->to) && (p->sized || *m & (MARK_INSN | MARK_BODY))) {
        cfg_enter(w, e->to, CFG_BLOCK_OUTSIDE);
        if (!wait.site) cfg_wait_for(w, number, wait);
        else if (number == e->proc) cfg_keep(w, &w->todo, wait.site + wait.size);
        else cfg_wait_for(w, number, wait);
    } else {
        ask_for(w, e->to, wait, flags, CFG_SOURCE_CALL);
    }
}

static void names(cfg_work *w, const cfg_event *e)
{
    uint32_t number = cfg_proc_near(w, e->to);
    if (number != CFG_NONE && w->procs.items[number].addr == e->to) {
        w->procs.items[number].flags |= CFG_PROC_ADDRESS_TAKEN;
        return;
    }
    cfg_keep(w, &w->found, (cfg_pointer){.to = e->to, .at = e->from, .sure = e->size != 0, .in_code = true});
}

static void apply(cfg_work *w, const cfg_event *e)
{
    switch (e->kind) {
    case EVENT_CALL: /* from 0: nothing depends on its coming back */
        go_to(w, e, (cfg_wait){.site = e->from, .proc = e->from ? e->proc : CFG_NONE, .size = e->size},
              CFG_PROC_CALLED);
        return;
    case EVENT_AWAY: go_to(w, e, (cfg_wait){.proc = e->proc}, 0); return;
    case EVENT_INSIDE: cfg_enter(w, e->to, CFG_BLOCK_OUTSIDE); return;
    case EVENT_NAMES: names(w, e); return;
    case EVENT_INDIRECT:
        w->procs.items[e->proc].jumps = true;
        cfg_add_site(w, e->from, w->indirects.count);
        cfg_keep(w, &w->indirects,
                 (cfg_indirect){.site = e->from, .proc = e->proc, .table = CFG_NONE, .spare = CFG_NONE});
        return;
    case EVENT_RETURNS: cfg_returns(w, e->proc); return;
    case EVENT_DATA: cfg_name_data(w, e->to, e->size != 0); return;
    case EVENT_OPERAND: cfg_name_operand(w, e->to); return;
    }
}

static void happen(cfg_work *w, cfg_event e)
{
    e.proc = w->current;
    if (w->trying) cfg_keep(w, &w->events, e);
    else apply(w, &e);
}

/* --- instructions --- */

static void set_mark(cfg_work *w, uint8_t *m, uint8_t bits)
{
    if (w->trying && (*m | bits) != *m) cfg_keep(w, &w->trial, (uint64_t)(m - w->marks) << 8 | *m);
    *m |= bits;
}

/* Control goes from `in` to `to`, by a branch. */
static void branch(cfg_work *w, const isa_insn *in, uint64_t to)
{
    const cfg_draft *p = &w->procs.items[w->current];
    if (cfg_inside(p, to)) cfg_keep(w, &w->todo, to);
    else happen(w, (cfg_event){.kind = EVENT_AWAY, .from = in->addr, .to = to});
}

/* Nothing of the procedure can stand at `next`, behind a call: it would not come back. */
static bool is_behind_all(const cfg_work *w, const cfg_draft *p, uint64_t next)
{
    if (next >= p->end || cfg_is_padding(w, next, p->end)) return true;
    const cfg_region *r = cfg_region_at(w, next);
    const uint8_t *bytes = r->bytes + (next - r->addr);
    if (w->machine->filler(bytes, r->end - next)) return true;
    return !p->sized && next % 16 == 0 && w->machine->prologue(bytes, r->end - next);
}

static void call(cfg_work *w, const isa_insn *in)
{
    const cfg_draft *p = &w->procs.items[w->current];
    uint64_t next = in->addr + in->len;
    uint8_t *m = cfg_mark(w, in->addr);
    if (is_behind_all(w, p, next)) { /* it cannot come back */
        set_mark(w, m, MARK_NORET);
        if (in->flow == ISA_FLOW_CALL) happen(w, (cfg_event){.kind = EVENT_CALL, .from = 0, .to = in->target});
        return;
    }
    if (in->flow == ISA_FLOW_CALL)
        happen(w, (cfg_event){.kind = EVENT_CALL, .from = in->addr, .to = in->target, .size = in->len});
    if (in->flow == ISA_FLOW_CALL_IND || w->trying) cfg_keep(w, &w->todo, next);
}

/* A call that only puts an address on the stack for a return nearby (thunks.c). What is behind it may be reached by
 * processors that guess, and belongs to the procedure. */
static void detour(cfg_work *w, const isa_insn *in)
{
    const cfg_draft *p = &w->procs.items[w->current];
    if (cfg_inside(p, in->target)) happen(w, (cfg_event){.kind = EVENT_INSIDE, .from = in->addr, .to = in->target});
    else happen(w, (cfg_event){.kind = EVENT_AWAY, .from = in->addr, .to = in->target});
    if (in->addr + in->len < p->end) cfg_keep(w, &w->todo, in->addr + in->len);
}

/* The instruction ends its block: what comes next? True: also what follows it. */
static bool transfer(cfg_work *w, const isa_insn *in, const isa_insn *before)
{
    cfg_leap leap;
    cfg_detour way = cfg_leaps(w, in, before, &leap);
    bool shared = way == CFG_LEAPS && leap.plain && cfg_inside(&w->procs.items[w->current], in->target);
    if (way == CFG_LEAPS && !shared) happen(w, (cfg_event){.kind = EVENT_INDIRECT, .from = in->addr});
    if (way == CFG_COMES_BACK) happen(w, (cfg_event){.kind = EVENT_RETURNS});
    switch (in->flow) {
    case ISA_FLOW_JUMP: branch(w, in, in->target); return false;
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG:
    case ISA_FLOW_TX: branch(w, in, in->target); return true;
    case ISA_FLOW_SYSCALL: return true;
    case ISA_FLOW_CALL:
    case ISA_FLOW_CALL_IND:
        if (way == CFG_GOES_ON) call(w, in);
        else detour(w, in);
        return false;
    case ISA_FLOW_JUMP_IND: happen(w, (cfg_event){.kind = EVENT_INDIRECT, .from = in->addr}); return false;
    case ISA_FLOW_RETURN: happen(w, (cfg_event){.kind = EVENT_RETURNS}); return false;
    case ISA_FLOW_FAR: cfg_blame(w, w->current, "a far branch"); return false;
    default: w->trial_traps |= in->flow == ISA_FLOW_TRAP; return false;
    }
}

/* Does control pass on to the next instruction, within the block? A handler may go on behind a trap; but a run of them
 * up to the procedure's end is padding. */
static bool passes(const cfg_work *w, const isa_insn *in, const uint8_t *next, size_t have)
{
    if (in->flow == ISA_FLOW_NEXT) return true;
    if (in->flow != ISA_FLOW_TRAP || w->sems[in->op] != SEM_INT3 || !have) return false;
    if (!w->procs.items[w->current].sized) return next[0] != in->raw[0];
    while (have && next[0] == in->raw[0]) next++, have--;
    return have;
}

static bool in_text(const cfg_work *w, uint64_t addr)
{
    return addr - w->low < w->high - w->low && cfg_region_at(w, addr);
}

static void look_for_names(cfg_work *w, const isa_insn *in, cfg_trail *trail)
{
    cfg_name name[CFG_MAX_NAMES];
    unsigned count = w->machine->names(w, in, trail, name);
    for (unsigned i = 0; i < count; i++) {
        const cfg_name *n = &name[i];
        if (!in_text(w, n->to)) happen(w, (cfg_event){.kind = EVENT_DATA, .to = n->to, .size = n->sure});
        else if (n->of_code)
            happen(w, (cfg_event){.kind = EVENT_NAMES, .from = in->addr, .to = n->to, .size = n->sure});
        else if (n->operand) happen(w, (cfg_event){.kind = EVENT_OPERAND, .to = n->to});
    }
}

/* Marks the instruction's bytes; false when another one begins inside it, or, for one that is only tried, seems to. */
static bool occupy(cfg_work *w, uint8_t *m, unsigned len, bool ends_block)
{
    const uint8_t begins = w->trying ? MARK_INSN | MARK_HELD : MARK_INSN;
    bool clear = true;
    set_mark(w, m, ends_block ? MARK_INSN | MARK_TERM : MARK_INSN);
    for (unsigned i = 1; i < len; i++) {
        clear &= !(m[i] & begins);
        set_mark(w, m + i, MARK_BODY);
    }
    return clear;
}

static void blame_overlap(cfg_work *w, uint64_t addr)
{
    w->trial_overlaps = true;
    if (!w->trying) cfg_keep(w, &w->overlaps, addr);
    cfg_blame(w, w->current, "instructions overlap");
}

/* Control has come to the procedure's end, behind the instruction `last`. A system call with no code behind it does not
 * come back. */
static void run_out(cfg_work *w, const isa_insn *last)
{
    uint64_t addr = last->addr + last->len;
    uint8_t *m = cfg_mark(w, addr);
    if (m && *m & MARK_ENTRY) happen(w, (cfg_event){.kind = EVENT_AWAY, .from = addr, .to = addr});
    else if (last->flow == ISA_FLOW_SYSCALL) set_mark(w, cfg_mark(w, last->addr), MARK_NORET);
    else cfg_blame(w, w->current, "control runs past its end");
}

/* Falls through padding into the next procedure: the padding is its own then. */
static bool reach_over_padding(cfg_work *w, uint64_t addr, uint64_t end)
{
    cfg_draft *p = &w->procs.items[w->current];
    const cfg_region *r = cfg_region_at(w, addr);
    if (!r || w->trying || !p->sized || addr != p->end || r->end <= end) return false;
    uint64_t last = cfg_skip_padding(w, addr, addr + 64 < r->end ? addr + 64 : r->end), next = addr;
    uint8_t *m = cfg_mark(w, next);
    while (next < last && m && !(*m & MARK_ENTRY)) m = cfg_mark(w, ++next); /* it may begin with such */
    if (next == addr || !m || !(*m & MARK_ENTRY)) return false;
    p->end = next;
    return true;
}

/* The unwind entry of what begins threads ends in front of the call of the kernel, since behind it a thread may have no
 * caller: the code goes on to where the next entry begins. */
static bool reach_over_call(cfg_work *w, uint64_t addr, uint64_t end)
{
    enum { FURTHEST = 64 };
    cfg_draft *p = &w->procs.items[w->current];
    const cfg_region *r = cfg_region_at(w, addr);
    isa_insn in;
    if (!r || w->trying || p->source != IMAGE_PROC_UNWIND || addr != p->end || r->end <= end) return false;
    if (!cfg_decode(w, addr, r->end, &in) || in.flow != ISA_FLOW_SYSCALL) return false;
    uint64_t last = addr + FURTHEST < r->end ? addr + FURTHEST : r->end;
    for (uint64_t next = addr + in.len; next < last; next++) {
        if (!(*cfg_mark(w, next) & MARK_ENTRY)) continue;
        p->end = next;
        return true;
    }
    return false;
}

uint64_t cfg_behind_prefix(const cfg_work *w, uint64_t addr)
{
    const cfg_region *r = cfg_region_at(w, addr);
    if (!r || addr == r->addr) return addr;
    const uint8_t *m = w->marks + r->base + (addr - r->addr);
    bool prefix = (m[0] & (MARK_INSN | MARK_BODY)) == MARK_BODY && m[-1] & MARK_INSN &&
                  w->machine->skippable(r->bytes[addr - r->addr - 1]);
    return prefix ? addr - 1 : addr;
}

/* It goes on on another stack, whose owner will come back to this one, to where it was left. */
static bool loads_stack(const cfg_work *w, const isa_insn *in)
{
    cfg_shape s;
    if (in->flow != ISA_FLOW_NEXT || !(in->bits & ISA_BIT_MEM)) return false;
    w->machine->shape(w, in, &s);
    return s.sem == SEM_MOV && s.has_dst && s.dst.kind == ISA_OPERAND_REG && s.dst.reg == w->machine->stack &&
           s.has_mem;
}

/* A jump over padding is no end of a straight run. */
static void hand_on(cfg_work *w, const isa_insn *in, const cfg_trail *trail)
{
    if (in->flow != ISA_FLOW_JUMP || !trail->known) return;
    w->handed = *trail;
    w->handed_to = in->target;
}

static void take_up(cfg_work *w, uint64_t addr, cfg_trail *trail)
{
    trail->known = 0;
    if (w->handed.known && w->handed_to == addr) *trail = w->handed;
    w->handed.known = 0;
}

/* Where no code that was made for this image leads, and new code may not reach: what is here are data, or is going to
 * be decrypted. */
static const char *leads_astray(const cfg_work *w, const isa_insn *in)
{
    const bool direct = in->flow == ISA_FLOW_JUMP || in->flow == ISA_FLOW_COND || in->flow == ISA_FLOW_CALL;
    if (in->target >= w->least && in->target <= w->most) return NULL;
    if (in->bits & ISA_BIT_PCREL_MEM) return "an operand far outside of the image";
    return direct ? "a branch far outside of the image" : NULL;
}

static void run(cfg_work *w, const cfg_region *r, uint64_t addr)
{
    const cfg_draft *p = &w->procs.items[w->current];
    uint64_t end = p->end < r->end ? p->end : r->end;
    uint8_t *m = w->marks + r->base + (addr - r->addr);
    isa_insn in = {.addr = addr}, before = {0};
    cfg_trail trail;
    take_up(w, addr, &trail);
    if (*m & MARK_BODY && !(*m & MARK_INSN)) blame_overlap(w, addr);
    set_mark(w, m, MARK_BLOCK);
    while (addr < end && !w->failed) {
        const uint8_t *bytes = r->bytes + (addr - r->addr);
        m = w->marks + r->base + (addr - r->addr);
        if (*m & MARK_INSN) {
            set_mark(w, m, MARK_BLOCK);
            return;
        }
        isa_result result = w->isa->decode(bytes, r->end - addr, addr, &in);
        if (in.len > end - addr) result = ISA_TRUNCATED;
        if (w->machine->filler(bytes, end - addr)) result = ISA_INVALID;
        if (result != ISA_OK && result != ISA_UNKNOWN) {
            cfg_blame(w, w->current,
                      result == ISA_TRUNCATED ? "an instruction is cut off by its end"
                                              : "bytes that are no instruction");
            return;
        }
        if (w->trying && cfg_holds_operand(w, r, addr, in.len)) {
            cfg_blame(w, w->current, "constants that code reads");
            return;
        }
        bool goes_on = passes(w, &in, bytes + in.len, end - addr - in.len);
        if (!occupy(w, m, in.len, !goes_on)) {
            blame_overlap(w, addr);
            return;
        }
        const char *astray = leads_astray(w, &in);
        if (astray) {
            cfg_blame(w, w->current, astray);
            return;
        }
        look_for_names(w, &in, &trail);
        if (w->go && loads_stack(w, &in)) happen(w, (cfg_event){.kind = EVENT_RETURNS});
        addr += in.len;
        if (goes_on) {
            before = in;
            continue;
        }
        hand_on(w, &in, &trail);
        if (!transfer(w, &in, before.len ? &before : NULL)) return;
        before.len = 0;
        if (addr < end) set_mark(w, w->marks + r->base + (addr - r->addr), MARK_BLOCK);
        p = &w->procs.items[w->current];
    }
    if (w->failed) return;
    if (reach_over_padding(w, addr, end) || reach_over_call(w, addr, end)) run(w, r, addr);
    else run_out(w, &in);
}

static bool find_place(cfg_work *w, uint64_t addr, const cfg_region **r)
{
    *r = cfg_region_at(w, addr);
    if (w->current == CFG_NONE || !cfg_inside(&w->procs.items[w->current], addr))
        w->current = w->trying ? CFG_NONE : cfg_proc_near(w, addr);
    return *r && w->current != CFG_NONE && cfg_inside(&w->procs.items[w->current], addr);
}

static void explore_from(cfg_work *w, uint64_t addr)
{
    const cfg_region *r;
    if (!find_place(w, addr, &r)) return;
    uint8_t *m = w->marks + r->base + (addr - r->addr);
    cfg_draft *p = &w->procs.items[w->current];
    if ((*m & (MARK_BLOCK | MARK_INSN)) == MARK_BLOCK) return; /* known to be no instruction */
    if (!w->trying && !(*m & MARK_BLOCK && *m & MARK_INSN)) p->dirty = true;
    if (*m & MARK_INSN) {
        set_mark(w, m, MARK_BLOCK);
    } else if (cfg_behind_prefix(w, addr) != addr) {
        set_mark(w, m - 1, MARK_BLOCK);
        cfg_keep(w, &w->skips, addr);
    } else {
        run(w, r, addr);
    }
}

void cfg_explore(cfg_work *w)
{
    w->current = CFG_NONE;
    while (w->todo.count && !w->failed) explore_from(w, w->todo.items[--w->todo.count]);
}

/* May what is tried go there? Never into an instruction; and what is only guessed to be code at all only to
 * what is code already, or to where no procedure is: else a wrong guess would spoil what is right. */
static bool harmless(const cfg_work *w, const cfg_event *e)
{
    const uint8_t *m = cfg_mark(w, e->to);
    if (e->kind != EVENT_CALL && e->kind != EVENT_AWAY) return true;
    if (!m) return false;
    if (*m & (MARK_ENTRY | MARK_INSN)) return true;
    if (*m & MARK_BODY) return false;
    if (!(w->procs.items[w->current].flags & CFG_PROC_GUESSED)) return true;
    uint32_t number = cfg_proc_near(w, e->to);
    return !(number != CFG_NONE && cfg_inside(&w->procs.items[number], e->to));
}

/* All ways from what is tried end at traps, as a few bytes of somebody's constants do. (What relocations lead to may: a
 * virtual function that must not be called.) */
static bool leads_nowhere(const cfg_work *w, uint64_t addr)
{
    if (*cfg_mark(w, addr) & MARK_HELD) return false;
    for (size_t i = 0; i < w->events.count; i++) {
        uint8_t kind = w->events.items[i].kind;
        if (kind != EVENT_NAMES && kind != EVENT_DATA && kind != EVENT_OPERAND) return false;
    }
    return w->trial_traps;
}

bool cfg_try(cfg_work *w, uint32_t proc, uint64_t addr)
{
    size_t before = w->todo.count;
    w->trying = true;
    w->trial_failed = w->trial_overlaps = w->trial_traps = false;
    w->trial.count = w->events.count = 0;
    cfg_keep(w, &w->todo, addr);
    while (w->todo.count > before && !w->trial_failed && !w->failed) {
        w->current = proc;
        explore_from(w, w->todo.items[--w->todo.count]);
    }
    w->trying = false;
    w->current = proc;
    for (size_t i = 0; i < w->events.count; i++) w->trial_failed |= !harmless(w, &w->events.items[i]);
    if (w->procs.items[proc].addr == addr) w->trial_failed |= leads_nowhere(w, addr);
    if (w->trial_failed) {
        w->todo.count = before;
        while (w->trial.count) { /* backwards: a place may be there twice */
            uint64_t entry = w->trial.items[--w->trial.count];
            w->marks[entry >> 8] = (uint8_t)entry;
        }
        return false;
    }
    w->procs.items[proc].dirty = true;
    for (size_t i = 0; i < w->events.count; i++) apply(w, &w->events.items[i]);
    return !w->failed;
}
