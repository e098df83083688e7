/* Stretches of code that no unwind table describes, in a file where most is described: whose code is it?
 *
 * It may be made by other tools than the rest, for a run time that walks stacks by tables of its own (V8's built-ins):
 * then it stays. It may also be the program's own, compiled without tables and linked with libraries that have them
 * (Debian's busybox); then it moves. No proof is to be had, so code is taken for a C compiler's only if all of this
 * holds:
 *
 *     convention   next to no procedure reaches memory through a register that calls keep without having set it: C
 *                  code saves such a register before it uses it, run times keep their roots, heaps and threads there
 *     links        many calls lead right to code of the described rest, or from there (as to musl's C library in
 *                  Rust's static programs, which calls nobody else's): a linker has put them together, while
 *                  built-ins reach C code, and are reached, through tables and adapters
 *     no offsets   nowhere in the data stand distances between the addresses behind its calls, one a record,
 *                  ascending: what a run time would look them up by
 *
 * What is small or has few calls is not asked about: what linkers and C libraries put between procedures.
 */
#include "move/isa.h"
#include "base/search.h"

#include <stdlib.h>
#include <string.h>

typedef struct stretch {
    uint64_t addr, end;
    uint32_t first, behind; /* its procedures */
} stretch;

/* --- how it reaches memory --- */

/* Registers through which memory is reached, that are set, and through which it is reached before they are set. */
typedef struct reach {
    isa_regs used, set, at_once;
} reach;

static bool look_at_block(const cfg_program *p, const cfg_block *b, reach *r)
{
    const uint8_t *bytes;
    isa_insn in;
    if (image_bytes(p->image, b->addr, &bytes) < b->size) return false;
    for (uint32_t at = 0; at < b->size; at += in.len) {
        isa_mem mem[ISA_MAX_MEM];
        isa_effects fx;
        if (p->isa->decode(bytes + at, b->size - at, b->addr + at, &in) > ISA_UNKNOWN) return false;
        int count = in.bits & ISA_BIT_MEM ? p->isa->memory(&in, mem) : 0;
        for (int i = 0; i < count; i++)
            if (mem[i].base < 64) r->used |= 1ull << mem[i].base;
        r->at_once |= r->used & ~r->set;
        p->isa->effects(&in, &fx);
        r->set |= fx.writes;
    }
    return true;
}

/* Registers of those that calls keep through which the procedure reaches memory, and which it never sets. */
isa_regs move_relied_on(const move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc];
    reach r = {0};
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
        if (!look_at_block(p, &p->blocks[k], &r)) return 0;
    return r.used & ~r.set & w->isa->kept;
}

/* And those through which it does where it begins, though it may set them further on, as what saves all registers and
 * loads others does. */
isa_regs move_relied_on_at_once(const move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    uint32_t entry = cfg_block_at(p, p->procs[proc].addr);
    reach r = {0};
    if (entry == CFG_NONE || !look_at_block(p, &p->blocks[entry], &r)) return 0;
    return r.at_once & w->isa->kept;
}

/* Few may: parts of procedures that lie elsewhere, and what is written by hand. */
static bool keeps_convention(const move_work *w, const stretch *s)
{
    enum { few = 16 };
    uint32_t relying = 0;
    for (uint32_t i = s->first; i < s->behind; i++) relying += move_relied_on(w, i) != 0;
    return relying * few <= s->behind - s->first;
}

/* --- where its calls lead, and who calls it --- */

/* The target of the direct call that ends the block; 0: none does. */
static uint64_t called_by(const cfg_program *p, const cfg_block *b)
{
    const uint8_t *bytes;
    isa_insn in = {0};
    if (!(b->flags & CFG_BLOCK_CALL) || image_bytes(p->image, b->addr, &bytes) < b->size) return 0;
    for (uint32_t at = 0; at < b->size; at += in.len)
        if (p->isa->decode(bytes + at, b->size - at, b->addr + at, &in) > ISA_UNKNOWN) return 0;
    return in.flow == ISA_FLOW_CALL ? in.target : 0;
}

/* The call at a block's end: does it lead to a procedure outside, which is described or an import's stub? */
static bool calls_described(const cfg_program *p, const stretch *s, const cfg_block *b)
{
    uint64_t target = called_by(p, b);
    if (!target || target - s->addr < s->end - s->addr) return false;
    uint32_t to = cfg_proc_covering(p, target);
    return to != CFG_NONE && (p->procs[to].flags & CFG_PROC_PLT || image_unwind_at(p->image, target));
}

/* Calls from the described rest, as far as `enough`. */
static uint64_t count_callers(const cfg_program *p, const stretch *s, uint64_t enough)
{
    uint64_t found = 0;
    for (uint32_t k = 0; k < p->block_count && found < enough; k++)
        found += called_by(p, &p->blocks[k]) - s->addr < s->end - s->addr &&
                 image_unwind_at(p->image, p->blocks[k].addr);
    return found;
}

/* --- distances between the addresses behind its calls --- */

typedef struct returns {
    INL_VEC(uint64_t) at; /* addresses behind calls, ascending */
    uint8_t *bits;        /* a bit a byte of the stretch */
    const stretch *in;
} returns;

static bool is_return(const returns *r, uint64_t addr)
{
    uint64_t off = addr - r->in->addr;
    return off <= r->in->end - r->in->addr && r->bits[off / 8] >> off % 8 & 1;
}

static bool find_returns(const cfg_program *p, const stretch *s, returns *r)
{
    *r = (returns){.in = s, .bits = calloc((s->end - s->addr) / 8 + 1, 1)};
    if (!r->bits) return false;
    for (uint32_t i = s->first; i < s->behind; i++) {
        const cfg_proc *of = &p->procs[i];
        for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++) {
            uint64_t behind = p->blocks[k].addr + p->blocks[k].size;
            if (!(p->blocks[k].flags & CFG_BLOCK_CALL) || behind > s->end) continue;
            if (!inl_vec_push(&r->at, behind)) return false;
            r->bits[(behind - s->addr) / 8] |= (uint8_t)(1 << (behind - s->addr) % 8);
        }
    }
    return true;
}

static void free_returns(returns *r)
{
    inl_vec_free(&r->at);
    free(r->bits);
}

enum { RECORDS = 16, FARTHEST = 4 /* words from one record to the next */ };

static uint32_t word(const uint8_t *bytes, size_t i)
{
    uint32_t value;
    memcpy(&value, bytes + 4 * i, sizeof value);
    return value;
}

/* Many tables have equal steps, and some code has calls at equal distances. */
static bool has_equal_steps(const uint8_t *bytes, unsigned step)
{
    enum { different = 4 };
    uint32_t known[different];
    unsigned count = 0;
    for (unsigned k = 1; k < RECORDS; k++) {
        unsigned i = 0;
        uint32_t by = word(bytes, k * step) - word(bytes, (k - 1) * step);
        while (i < count && known[i] != by) i++;
        if (i < count) continue;
        if (count + 1 == different) return false;
        known[count++] = by;
    }
    return true;
}

/* So many records, ascending, with the word at `bytes`: are they, counted from anywhere, addresses behind calls? */
static bool are_distances(const returns *r, const uint8_t *bytes, unsigned step)
{
    uint32_t first = word(bytes, 0);
    if (word(bytes, (RECORDS - 1) * step) - first > r->in->end - r->in->addr) return false;
    if (has_equal_steps(bytes, step)) return false;
    for (size_t i = 0; i < r->at.count; i++) {
        unsigned k = 1;
        while (k < RECORDS && is_return(r, r->at.items[i] + (word(bytes, k * step) - first))) k++;
        if (k == RECORDS) return true;
    }
    return false;
}

/* Every so many words of `count`, where they ascend: a table of twice as many records is not missed. */
static bool has_distances(const returns *r, const uint8_t *bytes, size_t count, unsigned step)
{
    size_t ascending = 1;
    for (size_t k = 1; k * step < count; k++) {
        ascending = word(bytes, k * step) > word(bytes, (k - 1) * step) ? ascending + 1 : 1;
        size_t from = (k + 1 - RECORDS) * step;
        if (ascending % RECORDS == 0 && are_distances(r, bytes + 4 * from, step)) return true;
    }
    return false;
}

static bool data_hold_distances(const cfg_program *p, const returns *r)
{
    const image_segment *segments;
    size_t count = image_segments(p->image, &segments);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = image_bytes(p->image, segments[i].addr, &bytes), skip = -segments[i].addr & 3;
        if (size > segments[i].file_size) size = segments[i].file_size;
        for (unsigned step = 1; step <= FARTHEST; step++)
            for (unsigned from = 0; from < step && 4 * from + skip < size; from++)
                if (has_distances(r, bytes + skip + 4 * from, (size - skip) / 4 - from, step)) return true;
    }
    return false;
}

/* --- judging --- */

typedef struct numbers {
    uint64_t calls, bytes, linked;
    bool stubs;
} numbers;

static numbers count_calls(const cfg_program *p, const stretch *s)
{
    numbers n = {0};
    for (uint32_t i = s->first; i < s->behind; i++) {
        const cfg_proc *of = &p->procs[i];
        n.stubs |= (of->flags & CFG_PROC_PLT) != 0;
        for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++) {
            n.calls += p->blocks[k].flags & CFG_BLOCK_CALL ? 1 : 0;
            n.linked += calls_described(p, s, &p->blocks[k]);
            n.bytes += p->blocks[k].size;
        }
    }
    return n;
}

/* False: no memory. */
static bool is_compiled(const move_work *w, const stretch *s, const numbers *n, bool *is)
{
    enum { some = 16 };
    const uint64_t enough = (n->calls + some - 1) / some;
    returns r;
    *is = false;
    if (!keeps_convention(w, s)) return true;
    if (n->linked < enough && n->linked + count_callers(move_cfg(w), s, enough - n->linked) < enough) return true;
    bool ok = find_returns(move_cfg(w), s, &r);
    *is = ok && !data_hold_distances(move_cfg(w), &r);
    free_returns(&r);
    return ok;
}

static uint32_t first_proc_behind(const cfg_program *p, uint64_t addr)
{
    return (uint32_t)INL_FIRST(p->proc_count, k, p->procs[k].addr >= addr);
}

static bool judge(move_work *w, uint64_t addr, uint64_t end, uint8_t mark)
{
    enum { large = 4096, many = 16, sparse = 220 }; /* bytes a call; what is written by hand for speed has fewer */
    const cfg_program *p = move_cfg(w);
    bool compiled;
    if (end - addr < large) return true;
    stretch s = {addr, end, first_proc_behind(p, addr), first_proc_behind(p, end)};
    numbers n = count_calls(p, &s);
    if (n.stubs || n.calls < many || n.bytes > n.calls * sparse) return true;
    if (!is_compiled(w, &s, &n, &compiled)) return false;
    for (uint32_t i = s.first; i < s.behind && !compiled; i++)
        if (!w->looked_up[i]) w->looked_up[i] = mark;
    return true;
}

static bool mostly_described(const cfg_program *p, const image_unwind_range *r, size_t count)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < count; i++) sum += r[i].size;
    return sum * 2 >= p->text_bytes;
}

bool move_judge_stretches(move_work *w, uint8_t mark)
{
    const cfg_program *p = move_cfg(w);
    const image_unwind_range *r;
    size_t count = image_unwind_ranges(p->image, &r);
    if (!mostly_described(p, r, count)) return true;
    uint64_t at = p->procs[0].addr;
    for (size_t i = 0; i < count; i++) {
        if (r[i].addr > at && !judge(w, at, r[i].addr, mark)) return false;
        if (r[i].addr + r[i].size > at) at = r[i].addr + r[i].size;
    }
    const cfg_proc *last = &p->procs[p->proc_count - 1];
    return last->addr + last->size <= at || judge(w, at, last->addr + last->size, mark);
}
