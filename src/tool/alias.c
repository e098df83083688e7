/* Can an access to the tool's memory meet a certain variable?
 *
 * An address that the code names (`lea`), or that a relocation stores, is taken: a pointer may lead there. A
 * variable of which no address is taken is accessed only by code that names it. For a scalar that is all; an array
 * may also be reached from an address beside it, so what is taken in its neighbourhood counts too.
 *
 * Where the tool was linked without symbols no variable has known limits, and nothing is private. */
#include "tool/glibc.h"
#include "tool/sums.h"
#include "base/search.h"
#include "image/image.h"

#include <elf.h>
#include <stdlib.h>

enum { BESIDE = 256 };

typedef struct range {
    uint64_t low, high;
} range;

static uint64_t bias(void) { return (uint64_t)(uintptr_t)&__ehdr_start; }

/* --- what is taken --- */

static bool take_relocations(alias_view *v)
{
    const image_reloc *relocs;
    size_t n = image_relocs(v->self, &relocs);
    for (size_t i = 0; i < n; i++)
        if (relocs[i].value && !inl_vec_push(&v->taken, relocs[i].value + bias())) return false;
    return true;
}

static bool takes_address(const isa_insn *in)
{
    isa_mem m[ISA_MAX_MEM];
    if (!(in->bits & ISA_BIT_PCREL_MEM)) return false;
    if (in->bits & ISA_BIT_UNKNOWN) return true;
    int n = tool_isa()->memory(in, m);
    for (int i = 0; i < n; i++)
        if (m[i].bits & ISA_MEM_PCREL && m[i].access == ISA_ADDRESS_ONLY) return true;
    return false;
}

/* Straight through; what begins by a symbol is met at its first instruction. */
static bool take_code(alias_view *v, uint64_t low, uint64_t high)
{
    const uint8_t *bytes;
    isa_insn in;
    size_t avail = image_bytes(v->self, low, &bytes);
    if (avail > high - low) avail = high - low;
    for (size_t at = 0; at < avail; at += in.len ? in.len : 1) {
        isa_result r = tool_isa()->decode(bytes + at, avail - at, low + at + bias(), &in);
        if (r == ISA_TRUNCATED) break;
        if (r != ISA_INVALID && takes_address(&in) && !inl_vec_push(&v->taken, in.target)) return false;
    }
    return true;
}

static bool take_segment(alias_view *v, const image_segment *s)
{
    const image_code_symbol *symbols;
    size_t n = image_code_symbols(v->self, &symbols);
    uint64_t at = s->addr, end = s->addr + s->file_size;
    for (size_t i = 0; i < n; i++) {
        if (symbols[i].addr <= at || symbols[i].addr >= end) continue;
        if (!take_code(v, at, symbols[i].addr)) return false;
        at = symbols[i].addr;
    }
    return take_code(v, at, end);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

bool alias_begin(alias_view *v)
{
    inl_error e = {0};
    const image_segment *s;
    if (image_open("/proc/self/exe", &v->self, &e) != INL_OK) return false;
    bool good = take_relocations(v);
    size_t n = image_segments(v->self, &s);
    for (size_t i = 0; i < n && good; i++)
        if (s[i].exec) good = take_segment(v, &s[i]);
    if (good) qsort(v->taken.items, v->taken.count, sizeof *v->taken.items, ascending);
    return good;
}

void alias_end(alias_view *v)
{
    inl_vec_free(&v->taken);
    if (v->self) image_close(v->self);
    v->self = NULL;
}

/* --- variables --- */

static bool is_within(uint64_t at, range r) { return at >= r.low && at < r.high; }

static bool is_taken(const alias_view *v, range r)
{
    size_t first = INL_FIRST(v->taken.count, k, v->taken.items[k] >= r.low);
    return first < v->taken.count && v->taken.items[first] < r.high;
}

/* The variable around an address; false: not known. */
static bool variable_at(const alias_view *v, uint64_t at, range *out)
{
    uint64_t start, size;
    if (!tool_is_static((const void *)(uintptr_t)at) || !image_variable_at(v->self, at - bias(), &start, &size))
        return false;
    *out = (range){start + bias(), start + bias() + size};
    return true;
}

static range beside(range r) { return (range){r.low - BESIDE, r.high + BESIDE}; }

/* Can a pointer of unknown origin lead into the variable at `at`? */
static bool is_reachable(const alias_view *v, uint64_t at, uint32_t size)
{
    range r;
    if (!variable_at(v, at, &r) || at + size > r.high) return true;
    return is_taken(v, r.high - r.low <= 8 ? r : beside(r));
}

/* --- accesses --- */

static bool overlaps(const weave_access *a, uint64_t at, uint32_t size)
{
    return a->at < at + size && at < a->at + a->size;
}

/* May `a` touch the static memory at `at`? */
static bool touches(const alias_view *v, const weave_access *a, uint64_t at, uint32_t size)
{
    range r;
    switch (a->place) {
    case WEAVE_AT: return overlaps(a, at, size);
    case WEAVE_IN:
        if (!variable_at(v, at, &r) || at + size > r.high) return true;
        return is_within(a->at, r.high - r.low == size ? r : beside(r));
    default: return is_reachable(v, at, size);
    }
}

/* What a pointer leads to may be any variable whose address is taken, or memory that was allocated. */
static bool sees_behind_pointer(const alias_view *v, const sum_cell *c, const weave_access *a)
{
    if (a->writes && touches(v, a, c->variable, 8)) return true;
    if (a->adds && a->size == c->size) return false;
    return a->place != WEAVE_AT || is_reachable(v, a->at, a->size);
}

static bool sees(const alias_view *v, const sum_cell *c, const weave_access *a)
{
    if (c->variable) return sees_behind_pointer(v, c, a);
    bool same_kind = a->adds && a->size == c->size;
    if (same_kind && (a->place != WEAVE_AT || a->at == c->at)) return false;
    if (tool_is_static((const void *)(uintptr_t)c->at)) return touches(v, a, c->at, c->size);
    return a->place == WEAVE_AT ? overlaps(a, c->at, c->size) : true;
}

bool alias_is_private(const alias_view *v, const sum_cell *c, const weave_access *accesses, size_t count)
{
    range r;
    if (c->variable && !tool_is_static((const void *)(uintptr_t)c->variable)) return false;
    if (!c->variable && tool_is_static((const void *)(uintptr_t)c->at) &&
        (!variable_at(v, c->at, &r) || c->at + c->size > r.high))
        return false;
    if (!c->variable && !tool_is_static((const void *)(uintptr_t)c->at) &&
        !tool_heap_holds((const void *)(uintptr_t)c->at))
        return false;
    for (size_t i = 0; i < count; i++)
        if (sees(v, c, &accesses[i])) return false;
    return true;
}
