/* When a tool is taken out, nothing of the process may lead to new code any more.
 *
 * Two kinds of addresses of new code get out of it: return addresses, which calls there have left on stacks, and those
 * of copied jump tables, which compilers keep in registers over a loop, and callees save. Nothing else makes a word
 * that is exactly the address behind a call in new code, or of a table's copy; so such words are what they seem to be,
 * on whatever stack, in whatever saved context they lie, live or left over. All aligned words of the process's private
 * memory are looked at, and those become the address of the same place in old code. The C library hides the addresses
 * that setjmp saves; what such a word hides is looked at as well.
 *
 * Unwind tables are not asked: stacks without them, of coroutines, and of threads that have ended are no different.
 * What an exception that is on its way has besides is in exceptions.c. */
#include "moved/private.h"
#include "base/ahead.h"
#include "base/maps_line.h"
#include "base/page.h"
#include "base/present.h"
#include "base/search.h"
#include "base/sys.h"
#include "base/vec.h"
#include "isa/isa.h"
#include "move/live.h"
#include "moved/pieces.h"
#include INL_ARCH_HEADER(run, abi)

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

static const move_told *record(void) { return (const move_told *)MOVE_TOLD_BASE; }

/* --- one word --- */

static uint64_t table_among(const move_told_table *all, size_t n, uint64_t word)
{
    size_t k = INL_FIRST(n, i, all[i].now >= word);
    return k < n && all[k].now == word ? all[k].old : 0;
}

static uint64_t table_of(uint64_t word)
{
    uint64_t old = table_among((const void *)record()->tables, record()->table_count, word);
    for (const moved_later *l = moved_later_first(); l && !old; l = l->next)
        old = table_among(l->tables, l->table_count, word);
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end && !old; p++)
        if (p->image.text_size) old = table_among(p->tables, p->table_count, word);
    return old;
}

/* The next page is read only for an instruction that lies in it too: there may be none. */
static bool decode(uint64_t at, isa_insn *in)
{
    const isa *set = isa_for_machine(RUN_ELF_MACHINE);
    const size_t most = 16, rest = inl_page_down(at) + INL_PAGE - at;
    isa_result r = set->decode((const uint8_t *)at, rest < most ? rest : most, at, in);
    if (r == ISA_TRUNCATED && rest < most) r = set->decode((const uint8_t *)at, most, at, in);
    return r == ISA_OK;
}

static bool is_call(const isa_insn *in) { return in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND; }

/* Is there a call that ends at `end`, in new code from `at` on? */
static bool ends_with_call(uint64_t at, uint64_t end)
{
    isa_insn in = {0};
    for (; at < end; at += in.len)
        if (!decode(at, &in)) return false;
    return at == end && is_call(&in);
}

/* --- old code --- */

static void put_old(const move_told_patch *all, uint64_t n, uint64_t at, uint8_t *out, uint64_t size)
{
    for (uint64_t k = INL_FIRST(n, i, all[i].at + all[i].size > at); k < n && all[k].at < at + size; k++)
        for (uint64_t b = 0; b < all[k].size; b++)
            if (all[k].at + b - at < size) out[all[k].at + b - at] = all[k].before[b];
}

/* As it was before there were jumps over it. False: it is not known. Signals are held back here, faults too: nothing is
 * read that may not be there. */
static bool old_code(uint64_t at, uint8_t *out, uint64_t size)
{
    const moved_image *i = moved_image_at(at);
    uint64_t have = i ? moved_mapped_from(i, at) : 0;
    if (!have) return false;
    memset(out, 0, size);
    memcpy(out, (const void *)at, have < size ? have : size);
    put_old((const void *)record()->patches, record()->patch_count, at, out, size);
    for (const moved_later *l = moved_later_first(); l; l = l->next) put_old(l->patches, l->patch_count, at, out, size);
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end; p++)
        if (p->image.text_size) put_old(p->patches, p->patch_count, at, out, size);
    return true;
}

/* An instruction of old code, whether a jump lies over it or not. */
static bool decode_old(uint64_t at, isa_insn *in)
{
    uint8_t code[16];
    return old_code(at, code, sizeof code) &&
           isa_for_machine(RUN_ELF_MACHINE)->decode(code, sizeof code, at, in) == ISA_OK;
}

/* --- behind a call --- */

static uint64_t return_of(uint64_t word)
{
    const moved_image *i = moved_at(word - 1);
    moved_spot spot;
    isa_insn in;
    if (!i || !i->map || !i->map->states) return 0;
    const move_carried_states *states = (const void *)((const char *)i->map + i->map->states);
    if (!moved_states_find(states, (uint32_t)(word - 1 - i->text), &spot)) return 0;
    if (!ends_with_call(i->text + spot.code_off, word)) return 0;
    uint64_t call = i->map_base + spot.old_off;
    return decode_old(call, &in) ? call + in.len : call;
}

uint64_t moved_back(uint64_t word)
{
    if (!moved_is_new(word - 1) && !moved_is_new(word)) return 0;
    uint64_t old = table_of(word);
    return old ? old : return_of(word);
}

/* --- jump tables --- */

static bool reads_copy(const isa_insn *in, const weave_context *c)
{
    isa_mem mem[ISA_MAX_MEM];
    int n = isa_for_machine(RUN_ELF_MACHINE)->memory(in, mem);
    for (int k = 0; k < n; k++)
        if (mem[k].base != ISA_NO_REG && table_of(c->gpr[mem[k].base])) return true;
    return false;
}

/* Behind the load of an entry and in front of the jump. An instruction is at most LONGEST bytes. */
bool moved_is_about_to_jump(const weave_context *c)
{
    enum { MOST = 32, LONGEST = 16, BYTES = 512 };
    uint8_t code[BYTES];
    bool holds = false;
    for (unsigned r = 0; r < sizeof c->gpr / sizeof *c->gpr; r++) holds = holds || moved_is_new(c->gpr[r]);
    if (!holds || !old_code(c->pc, code, sizeof code)) return holds;
    for (unsigned i = 0, at = 0; i < MOST && at + LONGEST <= BYTES; i++) {
        isa_insn in;
        if (isa_for_machine(RUN_ELF_MACHINE)->decode(code + at, LONGEST, c->pc + at, &in) != ISA_OK) return true;
        if (reads_copy(&in, c)) return false;
        if (in.flow != ISA_FLOW_NEXT) return in.flow == ISA_FLOW_JUMP_IND;
        at += in.len;
    }
    return true;
}

/* --- all of them --- */

typedef struct spans { /* what of the address space new code lies in, roughly */
    uint64_t low[2], size[2];
} spans;

static void widen(spans *s, const move_told_range *r)
{
    const uint64_t far = 1ull << 36;
    for (int k = 0; k < 2; k++) {
        uint64_t high = s->low[k] + s->size[k];
        bool near = s->size[k] && r->low < high + far && r->high + far > s->low[k];
        if (s->size[k] && !near && k == 0) continue;
        uint64_t low = s->size[k] && s->low[k] < r->low ? s->low[k] : r->low;
        if (!s->size[k] || high < r->high) high = r->high;
        s->low[k] = low;
        s->size[k] = high - low + 1; /* what returns to behind the end */
        return;
    }
}

static spans find_spans(void)
{
    spans s = {0};
    const move_told_range *ranges = (const void *)record()->ranges;
    for (uint64_t i = 0; i < record()->range_count; i++) widen(&s, &ranges[i]);
    for (const moved_later *l = moved_later_first(); l; l = l->next)
        if (l->high) widen(&s, &(move_told_range){l->low, l->high});
    for (const moved_piece *p = moved_pieces_now.all, *end = p + moved_pieces_now.count; p < end; p++)
        if (p->image.text_size) widen(&s, &(move_told_range){p->low, p->high});
    return s;
}

static inline bool may_be(const spans *s, uint64_t word)
{
    return word - s->low[0] < s->size[0] || word - s->low[1] < s->size[1];
}

typedef struct search {
    const moved_memory *memory;
    spans spans;
    uint64_t guard;
    void (*look)(const struct search *, uint64_t low, uint64_t high);
} search;

/* Numbers that were there before new code was: by where they are. */
typedef struct number {
    uint64_t at, value;
} number;
static INL_VEC(number) numbers; /* of this process, and of those that it forks */

static void note_numbers(const search *s, uint64_t low, uint64_t high)
{
    for (const uint64_t *word = (const uint64_t *)low; word < (const uint64_t *)high; word++)
        if (*word <= UINT32_MAX && may_be(&s->spans, *word) && (moved_is_new(*word) || moved_is_new(*word - 1)))
            if (!inl_vec_push(&numbers, ((number){(uint64_t)(uintptr_t)word, *word}))) return;
}

static bool is_number(const uint64_t *word)
{
    if (*word > UINT32_MAX) return false;
    size_t k = INL_FIRST(numbers.count, i, numbers.items[i].at >= (uint64_t)(uintptr_t)word);
    return k < numbers.count && numbers.items[k].at == (uint64_t)(uintptr_t)word && numbers.items[k].value == *word;
}

static void bring_back(const search *s, uint64_t low, uint64_t high)
{
    uint64_t back;
    for (uint64_t *word = (uint64_t *)low; word < (uint64_t *)high; word++) {
        uint64_t hidden = moved_shown(*word, s->guard);
        if (may_be(&s->spans, *word) && !is_number(word) && (back = moved_old_word(*word)) != 0) *word = back;
        else if (may_be(&s->spans, hidden) && (back = moved_back(hidden)) != 0) *word = moved_hidden(back, s->guard);
        else if (*word == moved_restorer_at() && (back = moved_restorer_of(word, high)) != 0) *word = back;
    }
}

/* The kernel tells of guards (MADV_GUARD_INSTALL) and of memory that has gone bad as of pages that are swapped out, and
 * who reads them dies. Where it does not know this call (before Linux 5.14) there are no guards either. */
static bool is_readable(uint64_t low, uint64_t high)
{
    long answer = inl_pages_want(low, high - low, false);
    return !answer || answer == -EINVAL;
}

static void look_at(void *arg, uint64_t low, uint64_t high)
{
    const search *s = arg;
    if (is_readable(low, high)) {
        s->look(s, low, high);
        return;
    }
    for (uint64_t at = low; at < high; at += INL_PAGE)
        if (is_readable(at, at + INL_PAGE)) s->look(s, at, at + INL_PAGE);
}

static bool is_the_programs(const inl_maps_line *m)
{
    if (m->shared || (m->prot & (PROT_READ | PROT_WRITE)) != (PROT_READ | PROT_WRITE)) return false;
    if (!strncmp(m->name, "/dev/", 5)) return false;
    if (m->low >= MOVE_PARK_BASE && m->high <= MOVE_REGION_HIGH) return false;
    if (m->high > record()->tool_low && m->low < record()->tool_high) return false;
    return !moved_is_new(m->low);
}

static bool open_all(moved_memory *m)
{
    m->mem = (int)run_proc_open_memory();
    m->maps = (int)run_proc_open("self/maps");
    m->pages = (int)run_proc_open("self/pagemap");
    if (!sys_failed(m->mem) && !sys_failed(m->maps)) return true;
    moved_memory_close(m);
    return false;
}

/* A process that has given rights away (a server, to an ordinary user) does not own its own files in /proc, as long as
 * it is one that must not be dumped. It stands still meanwhile. */
bool moved_memory_open(moved_memory *m)
{
    if (open_all(m)) return true;
    if (sys_call(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0, 0) != 0) return false;
    sys_call(SYS_prctl, PR_SET_DUMPABLE, 1, 0, 0, 0, 0);
    bool opened = open_all(m);
    sys_call(SYS_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0, 0);
    return opened;
}

void moved_memory_close(const moved_memory *m)
{
    if (!sys_failed(m->mem)) sys_call1(SYS_close, m->mem);
    if (!sys_failed(m->maps)) sys_call1(SYS_close, m->maps);
    if (!sys_failed(m->pages)) sys_call1(SYS_close, m->pages);
}

/* Line by line as the kernel hands them out, never cut. */
static bool search_all(search *s)
{
    enum { ROOM = 16 << 10 };
    static char text[ROOM + 1];
    size_t have = 0;
    for (long got; (got = sys_call3(SYS_read, s->memory->maps, (long)(text + have), (long)(ROOM - have))) > 0;) {
        char *at = text, *end;
        have += (size_t)got;
        text[have] = 0;
        for (; (end = strchr(at, '\n')); at = end + 1) {
            inl_maps_line m;
            *end = 0;
            if (!inl_maps_line_read(at, &m)) return false;
            if (is_the_programs(&m)) inl_present_each(s->memory->pages, m.low, m.high, look_at, s);
        }
        have = (size_t)(text + have - at);
        memmove(text, at, have);
    }
    return have == 0;
}

bool moved_bring_back(const moved_memory *memory, uint64_t tls_base)
{
    return search_all(&(search){memory, find_spans(), moved_pointer_guard(tls_base), bring_back});
}

static bool is_low(const spans *s)
{
    for (unsigned k = 0; k < sizeof s->low / sizeof *s->low; k++)
        if (s->size[k] && s->low[k] <= UINT32_MAX) return true;
    return false;
}

void moved_note_numbers(void)
{
    moved_memory memory;
    search s = {&memory, find_spans(), 0, note_numbers};
    if (!is_low(&s.spans) || !moved_memory_open(&memory)) return;
    search_all(&s);
    moved_memory_close(&memory);
}
