/* From an application address to a fragment: decode a superblock, let the client add snippets, weave it
 * into an arena, make stubs, publish.
 *
 * A superblock begins at the address asked for and goes on through the fall-through of conditional
 * branches (the taken edge is a side exit) and, when asked to, through direct jumps. It ends
 *   - at every other control transfer,
 *   - where a fragment exists already at the next block's head (no code is translated twice that way),
 *   - when it comes back to a block of its own, at the limits of instructions and blocks,
 *   - before the first byte that cannot be executed, and before a debugger's breakpoint,
 *   - behind what tells the program an address that is the cache's (pointers.c).
 * A run that is cut for length within a block goes on in a fragment of its own kind (`continues`), whose
 * first block is not a head; so what counts block heads stays exact.
 *
 * Code that cannot be guarded is checked: the fragment compares it with what it was made from at each entry,
 * and it ends behind every instruction that writes to memory.
 *
 * An instruction that has just written to the page it stands on, maybe to what follows it, is run once
 * from a fragment of its own that nobody can find again, without the snippets before it, which have run; its page
 * is not guarded meanwhile.
 *
 * All buffers are in jit.now, used under the process's lock; a translation allocates only from one arena that is
 * reset each time, and from the metadata.
 */
#include "base/libc_ready.h"
#include "base/log.h"
#include "jit/core.h"
#include "weave/isa.h"

#include INL_ARCH_HEADER(run, abi)

#include <string.h>
#include <sys/mman.h>

enum {
    DEFAULT_INSNS = 96,
    DEFAULT_BLOCKS = 8,
    ROOM_FIRST = 4096,
    BYTES_PER_INSN = 24,
    STUB_ROOM = JIT_MAX_EXITS * JIT_STUB_BYTES + 8 * JIT_MAX_INSNS + 16,
};

/* --- decoding --- */

typedef struct reader {
    uint64_t at, low, high; /* next instruction; bytes that may be read */
    size_t (*code)(uint64_t addr, bool *check);
} reader;

/* Decodes at r->at. ISA_TRUNCATED: no (more) executable memory there. */
static isa_result next_insn(reader *r, isa_insn *in)
{
    if (r->at < r->low || r->at >= r->high) {
        size_t n = r->code(r->at, &jit.now.build.checked);
        if (!n) return ISA_TRUNCATED;
        r->low = r->at;
        r->high = r->at + n;
    }
    for (;;) {
        isa_result res = jit.isa->decode((const uint8_t *)r->at, r->high - r->at, r->at, in);
        if (res != ISA_TRUNCATED) return res;
        size_t n = r->code(r->high, &jit.now.build.checked);
        if (!n) return ISA_TRUNCATED;
        r->high += n;
    }
}

/* Faults when it is reached, as what cannot be decoded does: ud2, or hlt. */
static void make_undefined(isa_insn *in, uint64_t at)
{
    bool protection = in->bits & ISA_BIT_PRIV;
    *in = (isa_insn){.addr = at, .len = 2, .flow = ISA_FLOW_TRAP, .raw = {0x0f, 0x0b}};
    if (!protection) return;
    in->len = 1;
    in->raw[0] = 0xf4;
    in->raw[1] = 0;
}

/* Decodes into the run's next free place, which commit_insn makes part of the jit.now.run. */
static bool fetch_insn(reader *r)
{
    weave_insn *w = &jit.now.insns[jit.now.run.insn_count];
    isa_result res = next_insn(r, &w->in);
    jit.now.undefined = res == ISA_INVALID;
    if (jit.now.undefined) make_undefined(&w->in, r->at);
    return res != ISA_TRUNCATED;
}

/* What the instruction was made from, for the check; one that cannot be decoded may end where memory does. */
static unsigned keep_source(const reader *r, const isa_insn *in)
{
    unsigned n = r->high - r->at < in->len ? (unsigned)(r->high - r->at) : in->len;
    if (!jit.now.build.checked) return in->len;
    memcpy(jit.now.build.source + jit.now.source_size, jit.now.undefined ? (const uint8_t *)r->at : in->raw, n);
    jit.now.source_size += n;
    return n;
}

static weave_insn *commit_insn(reader *r)
{
    weave_insn *w = &jit.now.insns[jit.now.run.insn_count];
    unsigned bytes = keep_source(r, &w->in);
    w->run = &jit.now.run;
    w->index = jit.now.run.insn_count++;
    w->block = jit.now.run.block_count - 1;
    w->before = w->after = w->taken = (weave_list){0};
    w->elided = w->was_call = w->placed = 0;
    w->guarded = jit.now.build.section && w->in.flow == ISA_FLOW_NEXT && w->in.bits & (ISA_BIT_MEM | ISA_BIT_UNKNOWN);
    jit_sections_named(&w->in);
    jit.now.extents[jit.now.extent_count - 1].high = r->at + bytes;
    r->at += w->in.len;
    jit.now.blocks[w->block].count++;
    return w;
}

static void begin_block(uint64_t at, bool head)
{
    jit.now.blocks[jit.now.run.block_count++] = (weave_block){
        .run = &jit.now.run, .first = jit.now.run.insn_count, .head = head};
    if (jit.now.extent_count && jit.now.extents[jit.now.extent_count - 1].high == at) return;
    jit.now.extents[jit.now.extent_count++] = (jit_extent){at, at};
}

static bool is_own_block(uint64_t at)
{
    for (unsigned i = 0; i < jit.now.run.block_count; i++)
        if (jit.now.insns[jit.now.blocks[i].first].in.addr == at) return true;
    return false;
}

/* Is it in the same restartable sequence, or likewise in none? */
static bool stays(uint64_t at) { return jit_section_at(at) == jit.now.build.section; }

/* May the run go on with a block at `at`? */
static bool follows(uint64_t at, unsigned max_blocks)
{
    return jit.now.run.block_count < max_blocks && !is_own_block(at) && stays(at) &&
           !jit_fragment_find(at, false, jit.now.version);
}

/* Ends a block; where the next one begins, or 0: the run ends. */
static uint64_t after_block(weave_insn *last, uint64_t behind, unsigned max_blocks)
{
    switch (last->in.flow) {
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG: return follows(behind, max_blocks) ? behind : 0;
    case ISA_FLOW_JUMP:
        if (!jit.options.chain_jumps || !follows(last->in.target, max_blocks)) return 0;
        last->elided = 1;
        return last->in.target;
    default: return 0;
    }
}

static unsigned limit(unsigned wanted, unsigned otherwise, unsigned most)
{
    unsigned n = wanted ? wanted : otherwise;
    return n < most ? n : most;
}

/* The instruction just fetched is the first whose code is to be checked, and not the run's first: the run ends
 * before it, since what went before may change it. */
static bool begins_checked(bool *was)
{
    if (jit.now.run.insn_count && jit.now.build.checked != *was) {
        jit.now.build.checked = *was;
        return true;
    }
    *was = jit.now.build.checked;
    return false;
}

/* A checked run ends behind what may change the rest of it. */
static bool ends_checked(const isa_insn *in)
{
    if (!jit.now.build.checked) return false;
    return jit.now.run.insn_count == JIT_CHECKED_INSNS || in->bits & ISA_BIT_UNKNOWN || isa_writes_memory(jit.isa, in);
}

typedef struct lengths { /* instructions of a run, of its first block, and blocks, at most */
    unsigned insns, first, blocks;
} lengths;

static lengths longest(void)
{
    lengths m = {.insns = limit(jit.options.max_block_insns, DEFAULT_INSNS, JIT_MAX_INSNS),
                 .first = limit(jit.options.max_block_insns, JIT_MAX_INSNS, JIT_MAX_INSNS),
                 .blocks = limit(jit.options.max_blocks, DEFAULT_BLOCKS, JIT_MAX_BLOCKS)};
    if (jit.options.stress & JIT_STRESS_ONE_BLOCK) m.blocks = 1;
    if (jit.now.build.once || jit.now.build.step) m.insns = m.first = m.blocks = 1;
    if (jit.now.build.most) m.insns = m.first = jit.now.build.most;
    return m;
}

static bool has_room(const lengths *m)
{
    return jit.now.run.insn_count < (jit.now.run.block_count > 1 ? m->insns : m->first);
}

/* A run ends before a block for which it has no room, so that blocks are shown whole wherever a run begins. The last
 * instruction that stays; NULL: the run is that block. */
static weave_insn *without_last_block(void)
{
    if (jit.now.run.block_count < 2 || jit.now.build.checked) return NULL;
    unsigned first = jit.now.blocks[--jit.now.run.block_count].first;
    jit_extent *x = &jit.now.extents[jit.now.extent_count - 1];
    x->high = jit.now.insns[first].in.addr;
    jit.now.extent_count -= x->low == x->high;
    jit.now.run.insn_count = first;
    return &jit.now.insns[first - 1];
}

/* Fills `run`. False: nothing executable at `app`. */
static bool build_run(uint64_t app, bool continues)
{
    const lengths most = longest();
    jit.now.build.checked = jit.now.build.done = false;
    jit.now.build.told_by = 0;
    jit.now.build.section = jit_section_at(app);
    jit.now.source_size = 0;
    reader r = {.at = app, .code = jit.now.build.once ? jit_memory_peek : jit_memory_code};
    weave_insn *last = NULL;
    bool between = true; /* the next instruction begins a block */
    bool was_checked = false;
    jit.now.run = (weave_run){
        .isa = jit.isa, .arena = &jit.now.arena, .insns = jit.now.insns, .blocks = jit.now.blocks};
    jit.now.extent_count = 0;
    while (has_room(&most) && stays(r.at) && !(last && jit_stops_at(r.at)) && fetch_insn(&r) &&
           !begins_checked(&was_checked)) {
        if (between) begin_block(r.at, last || !continues);
        last = commit_insn(&r);
        between = last->in.flow != ISA_FLOW_NEXT;
        if (!between && (ends_checked(&last->in) || jit_pointer_told(&last->in).width)) break;
        if (!between) continue;
        uint64_t next = after_block(last, r.at, most.blocks);
        jit.now.build.cut = false;
        if (!next) return true;
        r.at = next;
    }
    weave_insn *kept = !between && !has_room(&most) ? without_last_block() : NULL;
    if (kept) last = kept;
    jit.now.build.cut = !between && !kept;
    if (jit.now.build.cut && last && jit_pointer_told(&last->in).width) jit.now.build.told_by = last->in.len;
    if (last && !jit.now.build.cut) last->elided = 0;
    return last != NULL;
}

/* --- emission --- */

static isa_code window(const jit_arena *a)
{
    return (isa_code){
        .write = a->write + a->code_at, .exec = a->exec + a->code_at, .size = a->stub_at - a->code_at - STUB_ROOM};
}

static void emit_check(isa_code *c)
{
    size_t begin = jit_emit_check_begin(c, jit.now.run.insns[0].in.addr, !jit.now.run.blocks[0].head);
    const uint8_t *bytes = jit.now.build.source;
    for (unsigned i = 0; i < jit.now.extent_count; i++) {
        uint64_t size = jit.now.extents[i].high - jit.now.extents[i].low;
        jit_emit_check(c, begin, bytes, jit.now.extents[i].low, size);
        bytes += size;
    }
    jit_emit_check_end(c);
}

enum { FIXUPS = 4096 };

/* Under stress: the code is written for a place further on in the arena, where nothing is yet, so that no address in
 * it is meant by anybody else. False: there is no memory to keep fix-ups in. */
static bool send_away(isa_code *c, isa_fixups *list)
{
    *list = (isa_fixups){.items = inl_arena_alloc(&jit.now.arena, FIXUPS * sizeof *list->items), .room = FIXUPS};
    if (!list->items) return false;
    c->size = c->size / 2 & ~(size_t)63;
    c->exec += c->size;
    c->fixups = list;
    return true;
}

static inl_status bring_back(isa_code *c, isa_fixups *list, inl_error *e)
{
    uint64_t away = c->exec;
    c->exec -= c->size;
    c->fixups = NULL;
    if (weave_isa_of(jit.now.run.isa)->place(list, c->write, c->exec, away, away + c->size)) return INL_OK;
    return inl_fail(e, INL_ERR_UNSUPPORTED, "an operand is out of reach of where the code goes");
}

/* Weaves the run into the arena at its code_at. */
static inl_status weave(jit_arena *a, bool landing, isa_code *c, uint32_t *start_to_exec, weave_output *out,
                        inl_error *e)
{
    const jit_section *section = jit.now.build.section;
    uint64_t app = jit.now.run.insns[0].in.addr;
    weave_engine engine = {.lower = jit_lower,
                           .exit_to = jit_lower_exit,
                           .end_to = jit_lower_end,
                           .guard = jit_guard_begin,
                           .guard_ends = jit_guard_end,
                           .parks = jit_parks,
                           .arg = &jit.now.build};
    isa_fixups list;
    *c = window(a);
    bool away = jit.options.stress & JIT_STRESS_ELSEWHERE && send_away(c, &list);
    bool keep = !away && jit_kept_wanted();
    jit_wanted_weave(&engine, keep);
    jit.now.build.arena = a;
    jit.now.build.kept = NULL;
    jit.now.build.pair = (jit_pair){0};
    jit.now.build.landing_at = 0;
    jit.now.build.stored = 0;
    jit.now.build.exit_count = jit.now.build.const_count = jit.now.build.mark_count = 0;
    if (landing) jit_emit_landing(c, a, app, jit_wanted_at_entry(jit_landing_spills));
    *start_to_exec = (uint32_t)c->at;
    if (section && !jit_emit_section_entry(c, section, app, !jit.now.run.blocks[0].head) && !c->full)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "at %#llx: the restartable sequence cannot be entered",
                        (unsigned long long)app);
    jit.now.build.section_bytes = (uint32_t)c->at - *start_to_exec;
    if (jit.now.build.checked) emit_check(c);
    jit.now.build.check_bytes = (uint32_t)c->at - *start_to_exec;
    *out = (weave_output){0};
    jit.now.fixups = (isa_fixups){.items = jit.now.fixup_room, .room = keep ? JIT_FIXUPS : 0};
    if (keep) c->fixups = &jit.now.fixups;
    inl_status status = weave_compile(&jit.now.run, &engine, &jit.options.weave, c, out, e);
    if (keep) c->fixups = NULL;
    jit_wanted_woven();
    return status || !away ? status : bring_back(c, &list, e);
}

/* The exit behind the run's end: the last one that is not out of line. */
static unsigned end_exit(uint32_t cold_at)
{
    unsigned i = jit.now.build.exit_count;
    while (i && jit.now.build.exits[i - 1].rel32_at >= cold_at) i--;
    return i - 1;
}

/* Constants, then stubs, below what the arena has of them; links them to the code. */
static bool make_stubs(jit_arena *a, jit_fragment *f, const isa_code *c, uint32_t cold_at)
{
    size_t size = jit.now.build.const_count * 8 + jit.now.build.exit_count * (size_t)JIT_STUB_BYTES;
    size_t low = (a->stub_at - size) & ~(size_t)7;
    for (unsigned i = 0; i < jit.now.build.const_count; i++) {
        const jit_wanted_const *w = &jit.now.build.consts[i];
        memcpy(a->write + low + 8 * i, &w->value, 8);
        jit_patch(c->write + w->disp_at, c->exec + w->disp_at, a->exec + low + 8 * i);
    }
    isa_code s = {
        .write = a->write + low, .exec = a->exec + low, .at = 8 * jit.now.build.const_count, .size = a->stub_at - low};
    unsigned end = end_exit(cold_at);
    for (unsigned i = 0; i < jit.now.build.exit_count; i++) {
        const jit_wanted_exit *w = &jit.now.build.exits[i];
        jit_exit *e = &f->exits[i];
        e->target = w->target;
        e->continues = jit.now.build.cut && (i == end || w->told_by);
        e->told_by = w->told_by;
        e->from = f;
        e->rel32_at = w->rel32_at - f->start_to_exec;
        e->stub_at = (uint32_t)(isa_here(&s) - f->exec);
        jit_patch(c->write + w->rel32_at, c->exec + w->rel32_at, isa_here(&s));
        jit_emit_stub(&s, a, e);
    }
    return !s.full && jit_piece_add(a, f, (uint32_t)low, true) && (a->stub_at = low, true);
}

static bool cover(jit_fragment *f)
{
    for (unsigned i = 0; i < jit.now.extent_count; i++) {
        if (!i || jit.now.extents[i].low < f->app_low) f->app_low = jit.now.extents[i].low;
        if (jit.now.extents[i].high > f->app_high) f->app_high = jit.now.extents[i].high;
        if (!jit_memory_cover(f, jit.now.extents[i].low, jit.now.extents[i].high)) return false;
    }
    return true;
}

static jit_fragment *new_fragment(jit_arena *a, uint64_t app, bool continues, bool landing, const isa_code *c,
                                  uint32_t start_to_exec, const weave_output *out)
{
    size_t exits = jit.now.build.exit_count * sizeof(jit_exit);
    jit_fragment *f = jit_meta_alloc(sizeof *f + exits);
    if (!f) return NULL;
    f->app = app;
    f->exec = c->exec + start_to_exec;
    f->landing = landing ? c->exec + jit.now.build.landing_at : 0;
    f->arena = a;
    f->size = (uint32_t)c->at;
    f->start_to_exec = start_to_exec;
    f->check_bytes = (uint16_t)jit.now.build.check_bytes;
    f->section_bytes = (uint16_t)jit.now.build.section_bytes;
    f->exit_count = jit.now.build.exit_count;
    f->insn_count = jit.now.run.insn_count;
    f->continues = continues;
    f->version = jit.now.version;
    f->exits = (jit_exit *)(f + 1);
    f->dropped = jit.now.build.once || jit.now.build.step;
    if (!jit_fragment_encode_map(f, out, jit.now.build.marks, jit.now.build.mark_count) ||
        !jit_piece_add(a, f, (uint32_t)a->code_at, false) || !make_stubs(a, f, c, out->cold_at))
        return NULL;
    a->code_at += (c->at + 7) & ~(size_t)7;
    return f->dropped || (cover(f) && jit_fragment_publish(f)) ? f : NULL;
}

static void link_known(jit_fragment *f)
{
    for (uint32_t i = 0; i < f->exit_count; i++) {
        jit_exit *e = &f->exits[i];
        jit_fragment *to = jit_fragment_find(e->target, e->continues, f->version);
        if (to) jit_link(e, to);
    }
}

static jit_fragment *try_translate(uint64_t app, bool continues, bool landing, size_t room, inl_error *e)
{
    uint32_t start_to_exec;
    weave_output out;
    isa_code c;
    jit_arena *a = jit_arena_for(app, room + STUB_ROOM + JIT_LANDING_ROOM, e);
    if (!a) return NULL;
    if (weave(a, landing, &c, &start_to_exec, &out, e)) return NULL;
    if (out.shows &&
        jit.wanted.on) { /* what the tool is linked with does not say so: that was made to rely on it goes */
        jit_wanted_stop();
        inl_fail(e, INL_ERR_RANGE, "once more, with all values in place");
        return NULL;
    }
    jit_fragment *f = new_fragment(a, app, continues, landing, &c, start_to_exec, &out);
    if (!f) {
        inl_fail(e, INL_ERR_NO_MEMORY, "no room for the code cache's tables");
        return NULL;
    }
    if (jit.now.fixups.room) jit_kept_record(f, &out, &jit.now.fixups);
    if (jit.options.dump || jit.options.made) inl_libc_ready();
    if (jit.options.dump) jit_dump(f, &jit.now.run, &out);
    if (jit.options.made) jit.options.made(run_here.client.arg, f, &jit.now.run, &out);
    return f;
}

/* Refuses to go on: there is no way to run the program's next instruction. The end asks the tool for its report, and
 * for what is to be kept, which take the lock themselves. */
static void give_up(uint64_t app, const inl_error *e)
{
    inl_libc_ready();
    inl_lock_release(&run_here.lock);
    run_say("cannot translate the code at %#llx, the program is ended: %s", (unsigned long long)app, e->text);
    run_process_die(run_self(), SIGKILL);
}

/* To the client, which may insert what it likes. */
static void show(void)
{
    if (!jit.options.instrument) return;
    inl_libc_ready();
    jit.options.instrument(run_here.client.arg, &jit.now.run);
}

/* The instruction that cannot be translated may never be reached: the run ends before it. False: it is
 * the first, or none. */
static bool cut_before(uint64_t bad)
{
    uint32_t i = 1;
    while (i < jit.now.run.insn_count && jit.now.insns[i].in.addr != bad) i++;
    if (i >= jit.now.run.insn_count) return false;
    uint64_t app = jit.now.run.insns[0].in.addr;
    bool continues = !jit.now.run.blocks[0].head;
    inl_arena_reset(&jit.now.arena);
    jit.now.build.most = i;
    bool made = build_run(app, continues);
    jit.now.build.most = 0;
    if (made) show();
    return made;
}

/* Leaves out what has been inserted at the first instruction; false: nothing has. (One that is later is cut off first.)
 */
static bool give_up_points(const inl_error *e)
{
    weave_run *run = &jit.now.run;
    if (run->insns[0].in.addr != e->address || !weave_give_up(run, 0, run->block_count, e->address)) return false;
    inl_libc_ready();
    jit.options.refused(run_here.client.arg, &run->insns[0], e->text);
    return true;
}

static void count(const jit_fragment *f)
{
    jit_stats *s = &jit.stats;
    s->superblocks++;
    s->cut += f->continues;
    s->checked += jit.now.build.checked;
    s->blocks += jit.now.run.block_count;
    s->instructions += f->insn_count;
    s->code_bytes += f->size;
    s->stub_bytes += f->exit_count * (uint64_t)JIT_STUB_BYTES;
    s->landings += f->landing != 0;
}

/* NULL: there will be memory when other threads have left the cache. */
static jit_fragment *translate(uint64_t app, bool continues, bool landing)
{
    inl_error e = {0};
    size_t room = ROOM_FIRST + (size_t)jit.now.run.insn_count * BYTES_PER_INSN;
    show();
    jit_paired_heed(&jit.now.run);
    if (jit.now.build.once) { /* that has been done where it faulted */
        jit.now.insns[0].placed = (uint8_t)weave_sets_places(jit.now.insns);
        jit.now.insns[0].before = (weave_list){0};
        jit.now.blocks[0].anywhere = (weave_list){0};
    }
    for (unsigned tries = 0; tries < 12; tries++) {
        e.code = INL_OK;
        jit_fragment *f = try_translate(app, continues, landing, room, &e);
        if (f) {
            count(f);
            link_known(f);
            inl_log(INL_LOG_TRANSLATE, "%#llx: %u instructions, %u bytes at %#llx", (unsigned long long)app,
                    f->insn_count, f->size, (unsigned long long)f->exec);
            return f;
        }
        if (e.code == INL_ERR_RANGE) room *= 2;
        else if (e.code == INL_ERR_NO_MEMORY && tries < 2 && !jit_cache_is_held()) jit_flush_all();
        else if (e.code != INL_ERR_UNSUPPORTED || !(cut_before(e.address) || give_up_points(&e))) break;
    }
    if (e.code != INL_ERR_NO_MEMORY || !jit_cache_is_held()) give_up(app, &e);
    return NULL;
}

/* The body is to have the place in its 8 bytes that it had, for the sake of displacements that are patched. */
static void emit_landing(isa_code *c, const jit_arena *a, uint64_t app, bool landing, unsigned phase)
{
    if (landing) jit_emit_landing(c, a, app, jit_landing_spills);
    unsigned pad = (phase - (unsigned)isa_here(c)) & 7;
    jit.now.build.landing_at = pad;
    if (!pad) return;
    memset(c->write, 0, pad);
    c->at = pad;
    if (landing) jit_emit_landing(c, a, app, jit_landing_spills);
}

static bool pair_again(const isa_code *c, const jit_arena *a, const jit_pair *p)
{
    isa_code part = {.write = c->write + p->at, .exec = c->exec + p->at, .size = p->size};
    return !p->size || jit_emit_pair_again(&part, a, p->back);
}

static void shift(kept_entry *k, uint32_t start)
{
    jit_build *b = &jit.now.build;
    for (unsigned i = 0; i < b->exit_count; i++) b->exits[i].rel32_at += start;
    for (unsigned i = 0; i < b->const_count; i++) b->consts[i].disp_at += start;
    for (uint32_t i = 0; i < jit.now.fixups.count; i++) jit.now.fixups.items[i].at += start;
    b->pair.at += start;
    for (unsigned i = 0; i < k->head->faults; i++) {
        k->faults[i].from += start;
        k->faults[i].to += start;
    }
}

jit_fragment *jit_translate_kept(uint64_t app, bool continues, bool landing, kept_entry *k)
{
    inl_error e = {0};
    jit_arena *a = jit_arena_for(app, k->head->code_size + (size_t)STUB_ROOM + JIT_LANDING_ROOM + 16, &e);
    if (!a) return NULL;
    isa_code c = window(a);
    jit.now.build.arena = a;
    emit_landing(&c, a, app, landing, k->head->phase);
    uint32_t start = (uint32_t)c.at;
    shift(k, start);
    isa_put(&c, k->code, k->head->code_size);
    if (c.full || c.unreachable || !weave_isa_of(jit.isa)->place(&jit.now.fixups, c.write, c.exec, 0, 0)) return NULL;
    if (!pair_again(&c, a, &jit.now.build.pair)) return NULL;
    weave_output out = {.faults = k->faults,
                        .fault_count = k->head->faults,
                        .counts = k->counts,
                        .count_count = k->head->counts,
                        .cold_at = k->head->cold_at + start};
    jit.now.build.kept = k;
    jit_fragment *f = new_fragment(a, app, continues, landing, &c, start, &out);
    jit.now.build.kept = NULL;
    if (!f) return NULL;
    count(f);
    return f;
}

/* A landing apart from the body of a fragment that was not made for indirect entry. */
static void add_landing(jit_fragment *f)
{
    jit_arena *a = f->arena;
    if (a->stub_at - a->code_at < JIT_LANDING_ROOM + 16) return;
    isa_code c = {.write = a->write + a->code_at, .exec = a->exec + a->code_at, .size = JIT_LANDING_ROOM + 8};
    jit_emit_landing(&c, a, f->app, jit_wanted_by_landing(f->app, jit_landing_spills));
    jit_emit_jump(&c, f->exec);
    if (c.full || c.unreachable || !jit_piece_add(a, f, (uint32_t)a->code_at, false)) return;
    f->landing = c.exec;
    jit.stats.landings++;
    jit.stats.code_bytes += c.at;
    a->code_at += (c.at + 7) & ~(size_t)7;
}

jit_fragment *jit_translate_piece(run_thread *t, uint64_t app, bool continues, unsigned insns, jit_fault *fault)
{
    jit_fragment *f = NULL;
    inl_arena_reset(&jit.now.arena);
    jit.now.build.step = true;
    jit.now.build.most = insns;
    jit.now.version = (uint8_t)jit_of(t)->version;
    bool built = build_run(app, continues);
    jit.now.build.most = 0;
    if (built) f = translate(app, continues, false);
    else jit_memory_fault(app, fault);
    jit.now.build.step = false;
    if (f) jit_cache_dropped(f);
    return f;
}

jit_fragment *jit_translate_step(run_thread *t, uint64_t app, bool continues, jit_fault *fault)
{
    return jit_translate_piece(t, app, continues, 1, fault);
}

jit_fragment *jit_translate_once(run_thread *t, uint64_t app, jit_fault *fault)
{
    jit_fragment *f = NULL;
    inl_arena_reset(&jit.now.arena);
    jit.now.build.once = true;
    jit.now.version = (uint8_t)jit_of(t)->version;
    if (build_run(app, true)) f = translate(app, true, false);
    else jit_memory_fault(app, fault);
    jit.now.build.once = false;
    return f;
}

jit_fragment *jit_translate(run_thread *t, uint64_t app, bool indirect, bool continues, jit_fault *fault)
{
    unsigned version = jit_of(t)->version;
    jit_fragment *f = jit_fragment_find(app, continues, version);
    jit.now.version = (uint8_t)version;
    if (!f) {
        bool timed = jit.options.stats && !t->no_cycles;
        uint64_t begun = timed ? run_cycles() : 0;
        f = jit_kept_take(app, continues, indirect);
        if (!f) {
            inl_arena_reset(&jit.now.arena);
            if (!build_run(app, continues)) {
                jit_memory_fault(app, fault);
                return NULL;
            }
            f = translate(app, continues, indirect);
        }
        if (timed) jit.stats.translation_cycles += run_cycles() - begun;
        if (f && f->landing) jit_ibl_add(f);
    } else if (indirect && !f->landing) {
        add_landing(f);
        if (f->landing) jit_ibl_add(f);
    }
    return f;
}
