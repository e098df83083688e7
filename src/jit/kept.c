/* Translations kept from run to run.
 *
 * A superblock's translation is a function of the program's bytes, their address, and what the engine and the tool have
 * been told. The last is the file's key (kept_file.h); of the address nothing but the distances between the module's
 * own bytes is left in a translation, and what is left is listed: PC-relative fields (isa_fixups) and the return
 * addresses that calls push. The bytes are kept beside the translation, and compared with the program's before it
 * is used. So a file that belongs to another build of a module, or a module that has been changed in memory, is a miss.
 *
 * Kept are runs of code that nobody can write to, in modules that came from files, into which nothing was inserted but
 * additions to counters whose numbers are the same in each run. Whether a tool's callbacks may be left out is the
 * client's to say (jit_keeping). What is taken becomes a fragment like any other, with stubs and links of its own;
 * and with it the others of its group, which were made soon before it or after.
 *
 * Files are written once, at the end. All under the process's lock.
 */
#include "base/libc_ready.h"
#include "base/log.h"
#include "base/page.h"
#include "base/region.h"
#include "base/sys.h"
#include "jit/core.h"
#include "run/kernel.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum {
    AHEAD = 3,               /* entries, of whom what they will want of memory is asked for */
    MEMORY_MOST = 192 << 20, /* bytes of fresh entries */
    KEY_ROOM = 6144,
};

/* Bytes of all files together. */

static jit_kept *kept(void) { return &jit.kept; }
static const jit_keeping *keeping(void) { return &jit.options.keeping; }

/* --- modules --- */

/* What the code is: the linker's name for it, or else the file as the kernel knows it. */
static bool put_identity(const module *m, char *out, size_t size)
{
    const char *id = image_build_id(m->image), *path = image_path(m->image);
    struct stat st;
    if (m->is_vdso || !path || path[0] != '/') return false;
    if (id) return snprintf(out, size, "module %s\nbuild-id %s\n", path, id) < (int)size;
    if (sys_failed(sys_call4(SYS_newfstatat, -1, (long)path, (long)&st, 0))) return false;
    return snprintf(out, size, "module %s\nfile %llx:%llx size %llx changed %llx.%lx %llx.%lx\n", path,
                    (unsigned long long)st.st_dev, (unsigned long long)st.st_ino, (unsigned long long)st.st_size,
                    (unsigned long long)st.st_mtim.tv_sec, (unsigned long)st.st_mtim.tv_nsec,
                    (unsigned long long)st.st_ctim.tv_sec, (unsigned long)st.st_ctim.tv_nsec) < (int)size;
}

static char *make_key(const module *m)
{
    const jit_options *o = &jit.options;
    const weave_options *w = &o->weave;
    char module_text[2048], *key;
    if (!put_identity(m, module_text, sizeof module_text) || !(key = malloc(KEY_ROOM))) return NULL;
    int n = snprintf(key, KEY_ROOM, "%s%sengine %x %u %u %d %d\nweaver %x %x %d%d%d%d\ncounters %u %u\nprocessor %s\n",
                     module_text, o->keeping.key, o->stress, o->max_block_insns, o->max_blocks, o->chain_jumps,
                     o->stats, w->stress, w->seed, w->save_all, w->cold_exits, w->stops_stepping, w->pc_relative,
                     o->keeping.counters, o->keeping.banked, kept()->processor);
    if (n > 0 && n < KEY_ROOM) return key;
    free(key);
    return NULL;
}

static kept_module *meet(const module *m)
{
    inl_libc_ready();
    kept_module k = {.m = m, .key = make_key(m), .bits_size = inl_page_up((m->high - m->low) / 8 + 1)};
    if (k.key) kept_open(&k.map, keeping()->folder, k.key);
    if (k.map.at) run_own_locked(k.map.at, k.map.at + k.map.size, true);
    if (k.key) inl_log(INL_LOG_CACHE, "%s: %u kept translations", image_path(m->image), k.map.entries);
    if (inl_vec_push(&kept()->modules, k)) return &kept()->modules.items[kept()->modules.count - 1];
    free(k.key);
    return NULL;
}

/* NULL: nothing of the code there is kept. */
static kept_module *module_of(uint64_t app)
{
    const module *m = module_at(run_here.modules, app);
    if (!m) return NULL;
    kept_module *k = NULL;
    for (size_t i = 0; i < kept()->modules.count && !k; i++)
        if (kept()->modules.items[i].m == m) k = &kept()->modules.items[i];
    if (!k) k = meet(m);
    return k && k->key ? k : NULL;
}

static void forget(kept_module *k)
{
    if (k->map.at) run_own_locked(k->map.at, k->map.at + k->map.size, false);
    kept_close(&k->map);
    if (k->told) sys_call2(SYS_munmap, (long)(uintptr_t)k->told, (long)k->bits_size);
    if (k->recorded) sys_call2(SYS_munmap, (long)(uintptr_t)k->recorded, (long)k->bits_size);
    inl_vec_free(&k->fresh);
    free(k->key);
}

void jit_kept_module_gone(const module *m)
{
    for (size_t i = 0; i < kept()->modules.count; i++) {
        kept_module *k = &kept()->modules.items[i];
        if (k->m != m) continue;
        kept()->in_memory -= k->fresh.capacity;
        forget(k);
        *k = kept()->modules.items[--kept()->modules.count];
        return;
    }
}

/* --- may it? --- */

static bool is_usable(void) { return kept()->on && !jit.now.version && keeping()->allowed(run_here.client.arg); }

/* The same counter in each run? */
static bool is_known(uint32_t counter)
{
    return counter && counter < (counter < WEAVE_BANKED ? keeping()->banked : keeping()->counters);
}

static bool only_counts(const weave_list *list)
{
    for (const weave_insert *i = list->first; i; i = i->next) {
        const snippet *s = i->code, *by = s->a;
        if (s->kind != SNIPPET_COUNT || i->predicated || !is_known(s->index)) return false;
        if (!by || by->kind != SNIPPET_CONST || (int64_t)by->value != (int32_t)by->value) return false;
    }
    return true;
}

static bool is_plain(const weave_run *run)
{
    for (uint32_t i = 0; i < run->block_count; i++)
        if (!only_counts(&run->blocks[i].anywhere) || run->blocks[i].entry.first) return false;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *w = &run->insns[i];
        if (w->in.flow == ISA_FLOW_TRAP || w->in.bits & ISA_BIT_UNKNOWN)
            return false; /* longer than it seems, perhaps */
        if (!only_counts(&w->before) || !only_counts(&w->after) || !only_counts(&w->taken)) return false;
    }
    return true;
}

bool jit_kept_wanted(void)
{
    const jit_build *b = &jit.now.build;
    if (!is_usable() || !kept()->records || b->once || b->step || b->most || b->checked || b->section || b->told_by)
        return false;
    if (jit.options.stress & JIT_STRESS_ELSEWHERE || kept()->in_memory > MEMORY_MOST) return false;
    uint64_t app = jit.now.run.insns[0].in.addr;
    if (!is_plain(&jit.now.run) || !module_of(app)) return false;
    const module *m = module_at(run_here.modules, app);
    for (unsigned i = 0; i < jit.now.extent_count; i++) {
        const jit_extent *x = &jit.now.extents[i];
        if (!jit_memory_is_fixed(x->low, x->high) || module_at(run_here.modules, x->low) != m) return false;
    }
    return true;
}

/* Is `at` seen for the first time? A bit for each byte of the module, of whose pages few will be touched. */
static bool is_first(const kept_module *k, uint8_t **bits, uint64_t address)
{
    uint64_t at = address - k->m->low;
    if (address < k->m->low || address >= k->m->high) return true;
    if (!*bits) *bits = (uint8_t *)inl_region_map(0, k->bits_size, PROT_READ | PROT_WRITE, MAP_PRIVATE);
    if (!*bits) return true;
    bool first = !((*bits)[at / 8] >> at % 8 & 1);
    (*bits)[at / 8] |= (uint8_t)(1 << at % 8);
    return first;
}

/* --- recording --- */

/* Those that could be a descriptor's, as long as the module lies at a page's start. */
static bool may_be_descriptor(uint64_t address) { return address && address % 8 == 0; }

static uint16_t count_named(void)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < jit.now.run.insn_count; i++)
        n += may_be_descriptor(jit_section_named(&jit.now.run.insns[i].in));
    return (uint16_t)n;
}

static void fill_named(kept_entry *e, const module *m)
{
    unsigned n = 0;
    for (uint32_t i = 0; i < jit.now.run.insn_count; i++) {
        const isa_insn *in = &jit.now.run.insns[i].in;
        uint64_t address = jit_section_named(in), moves = (in->bits & ISA_BIT_PCREL_MEM) != 0;
        if (may_be_descriptor(address)) e->named[n++] = (kept_named){address - (moves ? m->bias : 0), moves};
    }
}

static bool set_sizes(kept_head *h, const jit_fragment *f, const weave_output *out, const isa_fixups *fixups)
{
    const jit_build *b = &jit.now.build;
    unsigned weights = 0, source = 0;
    for (uint32_t i = 0; i < out->count_count; i++)
        if (out->counts[i].weights) weights += out->counts[i].last - out->counts[i].first + 1;
    for (unsigned i = 0; i < jit.now.extent_count; i++)
        source += (unsigned)(jit.now.extents[i].high - jit.now.extents[i].low);
    for (unsigned i = 0; i < jit.now.look_count; i++)
        source += (unsigned)(jit.now.looks[i].high - jit.now.looks[i].low);
    h->exits = (uint16_t)b->exit_count;
    h->consts = (uint16_t)b->const_count;
    h->fixups = (uint16_t)fixups->count;
    h->extents = (uint16_t)jit.now.extent_count;
    h->looks = (uint16_t)jit.now.look_count;
    h->blocks = (uint16_t)jit.now.run.block_count;
    h->faults = (uint16_t)out->fault_count;
    h->counts = (uint16_t)out->count_count;
    h->weights = (uint16_t)weights;
    h->named = count_named();
    h->source_size = source;
    h->map_size = f->map_bytes;
    h->code_size = f->size - f->start_to_exec;
    h->cold_at = out->cold_at - f->start_to_exec;
    return !out->inlined_count && !jit.now.looks_full && weights < UINT16_MAX && fixups->count < UINT16_MAX &&
           h->code_size + (uint64_t)h->map_size + source < KEPT_ENTRY / 2 && out->cold_at >= f->start_to_exec;
}

/* An address goes into the file as its distance from the module's base; one of another module's has none. */
static bool is_of(const module *m, uint64_t target) { return module_at(run_here.modules, target) == m; }

static bool fill_addresses(kept_entry *e, const module *m, const isa_fixups *fixups, uint32_t start)
{
    const jit_build *b = &jit.now.build;
    bool good = true;
    for (unsigned i = 0; i < b->exit_count; i++) {
        e->exits[i] = (kept_exit){b->exits[i].target - m->bias, b->exits[i].rel32_at - start, 0};
        good &= is_of(m, b->exits[i].target);
    }
    for (unsigned i = 0; i < b->const_count; i++)
        e->consts[i] = (kept_const){b->consts[i].value - m->bias, b->consts[i].disp_at - start};
    for (unsigned i = 0; i < fixups->count; i++) {
        const isa_fixup *x = &fixups->items[i];
        e->fixups[i] = (kept_fixup){x->target - m->bias, x->at - start, x->kind};
        good &= is_of(m, x->target);
    }
    for (unsigned i = 0; i < jit.now.extent_count; i++)
        e->extents[i] = (kept_extent){jit.now.extents[i].low - m->bias, jit.now.extents[i].high - m->bias};
    for (unsigned i = 0; i < jit.now.look_count; i++)
        e->extents[jit.now.extent_count + i] = (kept_extent){jit.now.looks[i].low - m->bias,
                                                             jit.now.looks[i].high - m->bias};
    for (unsigned i = 0; i < jit.now.run.block_count; i++)
        e->blocks[i] = jit.now.insns[jit.now.blocks[i].first].in.addr - m->bias;
    fill_named(e, m);
    return good;
}

static void fill_output(kept_entry *e, const weave_output *out, uint32_t start)
{
    int64_t *weight = e->weights;
    for (uint32_t i = 0; i < out->fault_count; i++) {
        e->faults[i] = out->faults[i];
        e->faults[i].from -= start;
        e->faults[i].to -= start;
    }
    for (uint32_t i = 0; i < out->count_count; i++) {
        const weave_count *c = &out->counts[i];
        uint32_t n = c->weights ? c->last - c->first + 1 : 0;
        e->counts[i] = *c;
        e->counts[i].weights = c->weights ? (const int64_t *)1 : NULL;
        if (n) memcpy(weight, c->weights, n * sizeof *weight);
        weight += n;
    }
}

static uint8_t *copy_extents(uint8_t *to, const jit_extent *x, unsigned count)
{
    for (; count; count--, x++) {
        size_t n = (size_t)(x->high - x->low);
        memcpy(to, (const void *)(uintptr_t)x->low, n);
        to += n;
    }
    return to;
}

static void copy_source(uint8_t *to)
{
    to = copy_extents(to, jit.now.extents, jit.now.extent_count);
    copy_extents(to, jit.now.looks, jit.now.look_count);
}

static bool is_pairable(void)
{
    const isa_insn *last = &jit.now.insns[jit.now.run.insn_count - 1].in;
    return last->flow == ISA_FLOW_CALL || last->flow == ISA_FLOW_CALL_IND || last->flow == ISA_FLOW_RETURN;
}

static void fill_pair(kept_head *h, const jit_fragment *f, const module *m)
{
    const jit_pair *p = &jit.now.build.pair;
    h->pairable = is_pairable();
    h->paired = jit.paired.on;
    h->pair_size = p->size;
    h->pair_at = p->size ? p->at - f->start_to_exec : 0;
    h->pair_back = p->size ? p->back - m->bias : 0;
}

static bool fill(const jit_fragment *f, const weave_output *out, const isa_fixups *fixups, const module *m)
{
    kept_head *h = (kept_head *)kept()->room;
    kept_entry e;
    *h = (kept_head){.app = f->app - m->bias,
                     .bias = m->bias,
                     .phase = (uint8_t)(f->exec & 7),
                     .continues = f->continues,
                     .fixed = fixups->absolute,
                     .cut = jit.now.build.cut,
                     .relies = jit.now.build.module != NULL,
                     .hides = jit.options.weave.hide_dead,
                     .insn_count = f->insn_count};
    fill_pair(h, f, m);
    if (!set_sizes(h, f, out, fixups)) return false;
    size_t size = kept_entry_lay(h, &e);
    if (size > KEPT_ENTRY) return false;
    h->size = (uint32_t)size;
    memset(h + 1, 0, size - sizeof *h);
    if (!fill_addresses(&e, m, fixups, f->start_to_exec)) return false;
    copy_source((uint8_t *)(uintptr_t)e.source);
    fill_output(&e, out, f->start_to_exec);
    memcpy((uint8_t *)(uintptr_t)e.map, f->map, f->map_bytes);
    memcpy((uint8_t *)(uintptr_t)e.code, jit_write_view(f->arena, f->exec), h->code_size);
    return true;
}

void jit_kept_record(const jit_fragment *f, const weave_output *out, const isa_fixups *fixups)
{
    kept_module *k = module_of(f->app);
    if (!k) return;
    bool first = is_first(k, &k->recorded, f->app);
    if (jit.paired.on && !is_pairable() && !first) return; /* it is what it was without pairs */
    if (!fill(f, out, fixups, k->m)) return;
    size_t size = ((const kept_head *)kept()->room)->size, before = k->fresh.capacity;
    if (k->fresh.count + size > KEPT_LIMIT / 2 || !inl_vec_reserve(&k->fresh, k->fresh.count + size)) return;
    memcpy(k->fresh.items + k->fresh.count, kept()->room, size);
    k->fresh.count += size;
    k->fresh_count++;
    kept()->in_memory += k->fresh.capacity - before;
}

/* --- taking --- */

/* What the program's instructions name is looked at as when they are translated. */
static void look_at_named(const kept_entry *e, const module *m)
{
    for (unsigned i = 0; i < e->head->named; i++)
        jit_sections_see(e->named[i].address + (e->named[i].moves ? m->bias : 0));
}

/* A restartable sequence that is known; kept translations know nothing of them. */
static bool has_section(uint64_t low, uint64_t high)
{
    return jit.sections.low < high && low < jit.sections.high && jit.sections.all.count;
}

/* Is the program's code what it was made from and relied on, and where nobody can change it? */
static bool is_same_code(const kept_entry *e, const module *m)
{
    const uint8_t *source = e->source;
    uint32_t left = e->head->source_size;
    for (unsigned i = 0; i < e->head->extents + e->head->looks; i++) {
        uint64_t low = e->extents[i].low + m->bias, high = e->extents[i].high + m->bias, n = high - low;
        if (high <= low || n > left || !jit_memory_is_fixed(low, high) || has_section(low, high)) return false;
        if (memcmp((const void *)(uintptr_t)low, source, n) != 0) return false;
        source += n;
        left -= (uint32_t)n;
    }
    return !left && e->extents[0].low == e->head->app;
}

/* May what is dead where it leads be missing now? */
static bool may_rely(const kept_head *h) { return !h->relies || (jit.wanted.on && (!h->hides || jit.wanted.hides)); }

/* It is used, so what was looked at is relied on from here on: until all is flushed, as when a fragment is made. */
static bool rely(const kept_entry *e, const module *m)
{
    for (unsigned i = e->head->extents; i < e->head->extents + e->head->looks; i++)
        if (!jit_wanted_relied(e->extents[i].low + m->bias, e->extents[i].high + m->bias)) return false;
    return true;
}

static bool fits(const kept_entry *e)
{
    const kept_head *h = e->head;
    if (h->exits > JIT_MAX_EXITS || h->consts > JIT_MAX_INSNS || h->fixups > JIT_FIXUPS) return false;
    if (h->extents > JIT_MAX_BLOCKS || h->looks > JIT_LOOKS || h->blocks > JIT_MAX_BLOCKS || (h->cut && !h->exits))
        return false;
    if (h->pair_at > h->code_size || h->pair_size > h->code_size - h->pair_at) return false;
    if (h->pairable && h->paired != jit.paired.on) return false;
    uint32_t most = h->code_size - 4;
    for (unsigned i = 0; i < h->exits; i++)
        if (e->exits[i].rel32_at > most) return false;
    for (unsigned i = 0; i < h->consts; i++)
        if (e->consts[i].disp_at > most) return false;
    for (unsigned i = 0; i < h->fixups; i++)
        if (e->fixups[i].at > most) return false;
    return h->code_size >= 4;
}

/* Weights become pointers again. */
static bool take_counts(kept_entry *e)
{
    const int64_t *weight = e->weights, *end = weight + e->head->weights;
    for (unsigned i = 0; i < e->head->counts; i++) {
        weave_count *c = &e->counts[i];
        uint64_t n = c->last - c->first + 1ull;
        if (!is_known(c->counter) || c->last < c->first) return false;
        if (!c->weights) continue;
        if (n > (uint64_t)(end - weight)) return false;
        c->weights = weight;
        weight += n;
    }
    return true;
}

/* The translation in the making is what the entry says. `start`: where the body begins in the window. */
static void take_build(const kept_entry *e, const module *m)
{
    jit_build *b = &jit.now.build;
    const kept_head *h = e->head;
    b->exit_count = h->exits;
    b->const_count = h->consts;
    b->mark_count = b->check_bytes = 0;
    b->checked = b->done = false;
    b->section = NULL;
    b->pair = (jit_pair){h->pair_back + m->bias, h->pair_at, h->pair_size};
    b->section_bytes = 0;
    b->cut = h->cut;
    for (unsigned i = 0; i < h->exits; i++)
        b->exits[i] = (jit_wanted_exit){e->exits[i].target + m->bias, e->exits[i].rel32_at, 0};
    for (unsigned i = 0; i < h->consts; i++)
        b->consts[i] = (jit_wanted_const){e->consts[i].value + m->bias, (uint32_t)e->consts[i].disp_at};
    jit.now.fixups = (isa_fixups){.items = jit.now.fixup_room, .count = h->fixups, .room = JIT_FIXUPS};
    for (unsigned i = 0; i < h->fixups; i++)
        jit.now.fixup_room[i] = (isa_fixup){e->fixups[i].at, (uint8_t)e->fixups[i].kind, e->fixups[i].target + m->bias};
    jit.now.extent_count = h->extents;
    for (unsigned i = 0; i < h->extents; i++)
        jit.now.extents[i] = (jit_extent){e->extents[i].low + m->bias, e->extents[i].high + m->bias};
    jit.now.run = (weave_run){.isa = jit.isa, .insn_count = h->insn_count, .block_count = h->blocks};
}

static void tell(const kept_entry *e, kept_module *k)
{
    if (!keeping()->taken) return;
    inl_libc_ready();
    for (unsigned i = 0; i < e->head->blocks; i++) {
        uint64_t block = e->blocks[i] + k->m->bias;
        bool head = i || !e->head->continues;
        if (!head || is_first(k, &k->told, block)) keeping()->taken(run_here.client.arg, block, head);
    }
}

/* An entry of the group in memory, which can be taken once from one copy; its exits are not linked yet. */
static jit_fragment *take(kept_module *k, unsigned index, bool landing)
{
    const module *m = k->m;
    kept_entry *e = &kept()->entries[index];
    if ((e->head->fixed && e->head->bias != m->bias) || !fits(e)) return NULL;
    look_at_named(e, m);
    if (!is_same_code(e, m) || !take_counts(e) || !may_rely(e->head)) return NULL;
    take_build(e, m);
    jit_fragment *f = jit_translate_kept(e->head->app + m->bias, e->head->continues, landing || e->head->entered, e);
    if (f && !rely(e, m)) jit_drop_fragment(f);
    if (!f || f->dropped) return NULL;
    jit.stats.kept++;
    tell(e, k);
    if (f->landing) jit_ibl_add(f);
    return f;
}

/* `made`: the group's fragments, as far as there are some; NULL: none but this one. */
static void link_taken(jit_fragment *f, const kept_exit *exits, jit_fragment *const *made)
{
    for (uint32_t i = 0; i < f->exit_count; i++) {
        jit_exit *x = &f->exits[i];
        uint32_t to = exits[i].to;
        jit_fragment *g = made && to ? made[to - 1] : NULL;
        if (!g) g = jit_fragment_find(x->target, x->continues, f->version);
        if (g) jit_link(x, g);
    }
}

/* Memory is what taking waits for: what an entry will want of it is asked for some entries ahead. */
static void expect(const kept_entry *e, const module *m)
{
    enum { LINE = 64, LINES = 4 };
    const uint64_t app = e->head->app + m->bias, size = e->extents[0].high - e->extents[0].low;
    jit_fragment_expect(app, e->head->continues);
    if (e->head->entered) jit_ibl_expect(app);
    for (uint64_t i = 0; i <= size / LINE && i < LINES; i++) __builtin_prefetch((const void *)(app + i * LINE));
}

static void expect_links(const jit_fragment *f, const kept_exit *exits)
{
    for (uint32_t i = 0; f && i < f->exit_count; i++)
        if (!exits[i].to) jit_fragment_expect(f->exits[i].target, f->exits[i].continues);
}

/* What may change while translations are taken: all may be flushed, or some, and then not all of `made` are there. */
typedef struct moment {
    uint64_t epoch;
    size_t sections, drops;
} moment;
static moment now(void) { return (moment){jit.epoch, jit.sections.all.count, jit.stats.drops}; }
static bool is_past(const moment *m)
{
    return m->epoch != jit.epoch || m->sections != jit.sections.all.count || m->drops != jit.stats.drops;
}

/* The others of the group that entry `index` is of, which has become `made[index]`. False: something has changed. */
static bool take_others(kept_module *k, unsigned index, jit_fragment **made, const moment *since)
{
    const unsigned count = ((const kept_group *)kept()->room)->count;
    kept_entry *entries = kept()->entries;
    bool fresh[KEPT_TOGETHER] = {false};
    fresh[index] = true;
    for (unsigned i = 0; i < count; i++) {
        if (i + AHEAD < count) expect(&entries[i + AHEAD], k->m);
        if (i == index) continue;
        made[i] = jit_fragment_find(entries[i].head->app + k->m->bias, entries[i].head->continues, 0);
        if (made[i]) continue;
        made[i] = take(k, i, false);
        fresh[i] = made[i] != NULL;
        if (is_past(since)) return false;
    }
    for (unsigned i = 0; i < count; i++) {
        if (i + AHEAD < count && fresh[i + AHEAD]) expect_links(made[i + AHEAD], entries[i + AHEAD].exits);
        if (fresh[i]) link_taken(made[i], entries[i].exits, made);
    }
    return true;
}

static bool take_apart(const kept_group *g)
{
    for (unsigned i = 0; i < g->count; i++)
        if (!kept_group_entry(g, i, &kept()->entries[i])) return false;
    return true;
}

/* Entry `*index` of a group that is in memory then. */
static jit_fragment *take_at(kept_module *k, uint64_t app, bool continues, bool landing, unsigned *index)
{
    jit_fragment *f = NULL;
    uint32_t tried = 0;
    *index = 0;
    while (!f && kept_find(&k->map, app - k->m->bias, continues, kept()->room, &tried, index))
        if (take_apart((const kept_group *)kept()->room)) f = take(k, *index, landing);
    return f;
}

jit_fragment *jit_kept_take(uint64_t app, bool continues, bool landing)
{
    jit_fragment *made[KEPT_TOGETHER] = {NULL};
    kept_module *k = is_usable() ? module_of(app) : NULL;
    const moment begun = now();
    unsigned index;
    jit_fragment *f = k ? take_at(k, app, continues, landing, &index) : NULL;
    if (!f) return NULL;
    made[index] = f;
    if (!is_past(&begun) && take_others(k, index, made, &begun)) return f;
    f = jit_fragment_find(app, continues, 0);
    if (!f && (k = module_of(app)) && (f = take_at(k, app, continues, landing, &index)))
        link_taken(f, kept()->entries[index].exits, NULL);
    return f;
}

/* --- life --- */

void jit_kept_begin(void)
{
    kept()->on = keeping()->key != NULL;
    kept()->records = true;
    kept()->user = sys_call0(SYS_geteuid);
    if (kept()->on) jit_processor(kept()->processor, sizeof kept()->processor);
}

void jit_kept_forked(void) { kept()->records = false; }

/* A file is written anew when there is enough that it lacks. */
static bool is_worth_it(const kept_module *k)
{
    return k->key && k->fresh_count && k->fresh_count >= k->map.entries / 32;
}

/* Those that are entered by indirect branches get landings at once the next time. */
static void mark_entered(kept_module *k)
{
    for (size_t at = 0; at < k->fresh.count;) {
        kept_head *h = (kept_head *)(k->fresh.items + at);
        const jit_fragment *f = jit_fragment_find(h->app + k->m->bias, h->continues, 0);
        h->entered = f && f->landing;
        at += h->size;
    }
}

void jit_kept_save(void)
{
    bool any = false;
    inl_lock_take(&run_here.lock);
    for (size_t i = 0; i < kept()->modules.count && kept()->records; i++) {
        kept_module *k = &kept()->modules.items[i];
        if (!is_worth_it(k)) continue;
        mark_entered(k);
        bool done = kept_write(&k->map, k->fresh.items, k->fresh.count, keeping()->folder, k->key, kept()->user);
        inl_log(INL_LOG_CACHE, "%s: %u translations %s", image_path(k->m->image), k->fresh_count,
                done ? "kept" : "cannot be kept");
        k->fresh.count = k->fresh_count = 0;
        any |= done;
    }
    if (any) kept_folder_trim(keeping()->folder, KEPT_FOLDER_MOST);
    kept()->records = false;
    inl_lock_release(&run_here.lock);
}

void jit_kept_end(void)
{
    for (size_t i = 0; i < kept()->modules.count; i++) forget(&kept()->modules.items[i]);
    inl_vec_free(&kept()->modules);
}
