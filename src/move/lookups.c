/* Code whose return addresses the program itself looks up: run times that walk stacks by tables of their own
 * (collectors, exceptions, tracebacks). New return addresses would not be found there, so such code stays in place.
 * It is known by what it is, since names may be stripped:
 *
 *     caml_frametable:  .quad 1234                   data that holds the addresses behind calls, one a record;
 *                       .quad behind a call          compilers' tables of labels hold several of one procedure
 *                       .short size, live, ...       side by side instead
 *
 *     text:  described | described |                      | described      a stretch of code, calls in it, that no
 *                                   many calls, no unwind                  unwind table describes, in a file where
 *                                   table (V8's built-ins)                 most is: made by other tools, with
 *                                                                          tables that need not be addresses
 *                                                                          (stretches.c)
 *
 *     cmp 16(%r14),%rsp ; jbe more        code, close together, that compares the stack pointer with a limit that
 *                                         hangs on a register nobody sets: a run time with stacks of its own, with
 *                                         what lies around it and uses the register alike (V8 in programs without
 *                                         unwind tables)
 *
 *     call ; 1: lea 1b ; cmp          code that compares where a call has come back to with where it should
 *
 *     cmp %fs:112,%rsp ; jb 1f        a stack that grows by pieces (-fsplit-stack): what is called goes on a byte
 *     1: call more ; ret              behind where it would return to, and returns to the one
 *
 *     call mcount                     a profiler's counter of who calls whom (-pg), by return addresses
 *
 *     __start_NAME <= address         code in a section of its own, whose bounds linkers tell: what has called lies
 *                                     between them (gperftools)
 *
 *     .gopclntab, __managedcode, .svm_heap           run times that are known by their sections,
 *     mono_aot_file_info, _kDart...                  or by what they look up by its name
 */
#include "move/isa.h"

#include <elf.h>
#include <string.h>

enum { BY_DATA = 1, BY_STRETCH, BY_STACK, BY_FENCE, BY_PIECES, BY_PROFILE, BY_SECTION, BY_SLEDS, BY_COPIES };

/* --- whole images --- */

static const char go[] = "Go's runtime looks return addresses up in its own tables";

bool move_is_go(const char *reason) { return reason == go; }

const char *move_lookups_of_image(image *im)
{
    static const struct known {
        const char *section, *reason;
    } known[] = {
        {"__managedcode", ".NET's runtime looks return addresses up in its own tables"},
        {".svm_heap", "GraalVM's runtime looks return addresses up in its own tables"},
    };
    static const struct exported {
        const char *name, *reason;
    } exported[] = {
        {"mono_aot_file_info", "Mono's runtime looks return addresses up in its own tables"},
        {"_kDartIsolateSnapshotInstructions", "Dart's runtime looks return addresses up in its own tables"},
    };
    const image_section *sections;
    size_t count = image_sections(im, &sections);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < sizeof known / sizeof *known; k++)
            if (!strcmp(sections[i].name, known[k].section)) return known[k].reason;
    for (size_t k = 0; k < sizeof exported / sizeof *exported; k++)
        if (image_symbol(im, exported[k].name, NULL, NULL)) return exported[k].reason;
    return image_is_go(im) ? go : NULL;
}

/* --- tables of return addresses --- */

/* The procedure in which a call ends right before the address, or CFG_NONE. Behind one that does not return another
 * procedure may begin, and the address is that one's, unless it stands `among` others that lead behind calls. */
static uint32_t caller_behind(const cfg_program *p, uint64_t addr, bool among)
{
    uint32_t at = cfg_block_at(p, addr), b = cfg_block_covering(p, addr - 1);
    bool entry = at != CFG_NONE && p->blocks[at].flags & CFG_BLOCK_ENTRY;
    if (entry && !among && !cfg_proc_is_padding(p, p->blocks[at].proc)) return CFG_NONE;
    if (b == CFG_NONE || !(p->blocks[b].flags & CFG_BLOCK_CALL) || p->blocks[b].addr + p->blocks[b].size != addr)
        return CFG_NONE;
    if (entry && !(p->blocks[b].flags & CFG_BLOCK_NO_RETURN)) return CFG_NONE;
    return p->blocks[b].proc;
}

/* A label of the procedure: next to it in data, it says that both are labels. */
static bool is_label_of(const cfg_program *p, uint32_t proc, uint64_t addr)
{
    return addr != p->procs[proc].addr && cfg_proc_covering(p, addr) == proc;
}

/* The procedure into which a word of data leads, right behind a call; CFG_NONE: nothing like it. */
static uint32_t returned_to(const cfg_program *p, uint64_t value, uint64_t before, uint64_t behind, bool among)
{
    uint32_t proc = caller_behind(p, value, among);
    if (proc != CFG_NONE && (is_label_of(p, proc, before) || is_label_of(p, proc, behind))) return CFG_NONE;
    return proc;
}

enum {
    RECORD = 128
}; /* bytes from one record's address to the next one's, at most: a few words say what is live there */

/* Does the relocation in front of it, or the one behind, lead behind a call? */
static bool reloc_among(const cfg_program *p, const image_reloc *r, size_t count, size_t i)
{
    return (i && r[i].offset - r[i - 1].offset <= RECORD && caller_behind(p, r[i - 1].value, false) != CFG_NONE) ||
           (i + 1 < count && r[i + 1].offset - r[i].offset <= RECORD &&
            caller_behind(p, r[i + 1].value, false) != CFG_NONE);
}

static void look_at_relocations(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const image_reloc *r;
    size_t count = image_relocs(p->image, &r);
    for (size_t i = 0; i < count; i++) {
        if (caller_behind(p, r[i].value, true) == CFG_NONE) continue;
        bool first = i == 0 || r[i - 1].offset + 8 != r[i].offset;
        bool last = i + 1 == count || r[i].offset + 8 != r[i + 1].offset;
        uint32_t proc = returned_to(p, r[i].value, first ? 0 : r[i - 1].value, last ? 0 : r[i + 1].value,
                                    reloc_among(p, r, count, i));
        if (proc != CFG_NONE) w->looked_up[proc] = BY_DATA;
    }
}

static uint64_t word_at(const uint8_t *bytes, size_t size, size_t at)
{
    uint64_t word = 0;
    if (at + 8 <= size) memcpy(&word, bytes + at, 8);
    return word;
}

static bool word_among(const cfg_program *p, const uint8_t *bytes, size_t size, size_t at)
{
    for (size_t step = 8; step <= RECORD; step += 8)
        if (caller_behind(p, word_at(bytes, size, at + step), false) != CFG_NONE ||
            (at >= step && caller_behind(p, word_at(bytes, size, at - step), false) != CFG_NONE))
            return true;
    return false;
}

/* The data words of a file that is loaded where it says. One may look like an address by chance: with `note`
 * false they are only counted. */
static uint32_t look_at_words(move_work *w, bool note)
{
    const cfg_program *p = move_cfg(w);
    const image_segment *s;
    size_t count = image_segments(p->image, &s);
    const cfg_proc *last = &p->procs[p->proc_count - 1];
    uint64_t low = p->procs[0].addr, room = last->addr + last->size - low;
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        size_t size = s[i].exec ? 0 : image_bytes(p->image, s[i].addr, &bytes);
        if (size > s[i].file_size) size = s[i].file_size;
        for (size_t at = -s[i].addr & 7; at + 8 <= size; at += 8) {
            uint64_t word = word_at(bytes, size, at);
            if (word - low > room || caller_behind(p, word, true) == CFG_NONE) continue;
            uint64_t before = at >= 8 ? word_at(bytes, size, at - 8) : 0, behind = word_at(bytes, size, at + 8);
            uint32_t proc = returned_to(p, word, before, behind, word_among(p, bytes, size, at));
            found += proc != CFG_NONE;
            if (note && proc != CFG_NONE) w->looked_up[proc] = BY_DATA;
        }
    }
    return found;
}

/* --- stacks of its own --- */

typedef struct check {
    uint32_t proc;
    uint8_t base;
} check;
typedef INL_VEC(check) checks;

static bool has_call(const cfg_program *p, uint32_t proc)
{
    const cfg_proc *of = &p->procs[proc];
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
        if (p->blocks[k].flags & CFG_BLOCK_CALL) return true;
    return false;
}

/* The procedure's comparisons of the stack pointer with what a register leads to. */
static bool find_checks(const move_work *w, uint32_t proc, checks *out)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc];
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++) {
        const cfg_block *b = &p->blocks[k];
        const uint8_t *bytes;
        size_t have = image_bytes(p->image, b->addr, &bytes);
        int base = have < b->size ? -1 : w->isa->checks_stack(bytes, b->size);
        if (base >= 0 && !inl_vec_push(out, (check){proc, (uint8_t)base})) return false;
    }
    return true;
}

/* Goes on from a procedure while others rely on the register, in one direction; the last that does. */
static uint32_t spread(const move_work *w, uint32_t from, int step, unsigned base)
{
    const cfg_program *p = move_cfg(w);
    enum { few = 16 }; /* calling procedures between that do not */
    uint32_t last = from;
    unsigned others = 0;
    for (uint32_t i = from + (uint32_t)step; i < p->proc_count && others <= few; i += (uint32_t)step) {
        if (!has_call(p, i)) continue;
        if (!((move_relied_on(w, i) | move_relied_on_at_once(w, i)) >> base & 1)) {
            others++;
        } else {
            last = i;
            others = 0;
        }
    }
    return last;
}

static bool look_for_stacks(move_work *w)
{
    enum { near = 1 << 16, many = 24 };
    const cfg_program *p = move_cfg(w);
    checks found = {0};
    bool ok = true;
    for (uint32_t i = 0; ok && i < p->proc_count; i++) ok = find_checks(w, i, &found);
    for (size_t i = 0, end; ok && i < found.count; i = end) {
        uint8_t base = found.items[i].base;
        for (end = i + 1; end < found.count && found.items[end].base == base; end++)
            if (p->procs[found.items[end].proc].addr - p->procs[found.items[end - 1].proc].addr > near) break;
        if (end - i < many) continue;
        uint32_t first = spread(w, found.items[i].proc, -1, base);
        uint32_t last = spread(w, found.items[end - 1].proc, 1, base);
        for (uint32_t k = first; k <= last; k++) w->looked_up[k] = BY_STACK;
    }
    inl_vec_free(&found);
    return ok;
}

/* Is the stack of the procedure's callers in pieces? */
static bool asks_piece(const move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc];
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++) {
        const cfg_block *b = &p->blocks[k];
        const uint8_t *bytes;
        if (image_bytes(p->image, b->addr, &bytes) >= b->size && w->isa->asks_piece(bytes, b->size)) return true;
    }
    return false;
}

/* --- profilers --- */

/* A C library of its own has these counters too, for others. */
static bool is_profiled(image *im)
{
    for (const char *const *name = cfg_call_counters; *name; name++)
        if (image_has_dynamic(im, *name, false) ||
            (image_symbol(im, *name, NULL, NULL) && !image_has_dynamic(im, *name, true)))
            return true;
    return false;
}

/* Callers and callees, wherever they are. */
static void look_for_profiler(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    if (!move_calls_can_stay(w) || !is_profiled(p->image)) return;
    for (uint32_t i = 0; i < p->proc_count; i++)
        if (!w->looked_up[i] && has_call(p, i)) w->looked_up[i] = BY_PROFILE;
}

/* --- sections with bounds --- */

static bool is_identifier(const char *name)
{
    size_t n = strspn(name, "_abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789");
    return *name && !name[n];
}

static void look_at_sections(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    const image_section *s;
    size_t count = move_calls_can_stay(w) ? image_sections(p->image, &s) : 0;
    for (size_t k = 0; k < count; k++) {
        if (!(s[k].flags & SHF_EXECINSTR) || !is_identifier(s[k].name)) continue;
        for (uint32_t i = 0; i < p->proc_count; i++)
            if (p->procs[i].addr - s[k].addr < s[k].size && !w->looked_up[i] && has_call(p, i))
                w->looked_up[i] = BY_SECTION;
    }
}

/* --- asking --- */

/* So many words of data that lead behind calls are no accident. */
static uint32_t by_chance(const cfg_program *p)
{
    enum { least = 32, share = 256 };
    uint32_t calls = 0;
    for (uint32_t i = 0; i < p->block_count; i++) calls += p->blocks[i].flags & CFG_BLOCK_CALL ? 1 : 0;
    return calls / share > least ? calls / share : least;
}

bool move_find_lookups(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    w->looked_up = calloc(p->proc_count + 1u, 1);
    if (!w->looked_up) return false;
    if (p->proc_count == 0) return true;
    move_find_fenced(w, w->looked_up, BY_FENCE);
    move_find_sleds(w, w->looked_up, BY_SLEDS);
    look_at_relocations(w);
    if (image_type(p->image) == ET_EXEC && look_at_words(w, false) >= by_chance(p)) look_at_words(w, true);
    bool good = move_judge_stretches(w, BY_STRETCH) && look_for_stacks(w);
    if (good) look_for_profiler(w);
    if (good) look_at_sections(w);
    return good && move_find_copied(w, w->looked_up, BY_COPIES);
}

/* mov -8(%rsp),%rdx ; lea here(%rip),%rsi ; cmp %rsi,%rdx: code behind a call names its own first address, to see
 * whether the call came back to where it was made (clang's speculative load hardening). */
static bool names_itself(const cfg_program *p, const cfg_block *b)
{
    const uint8_t *bytes;
    isa_insn in;
    size_t have = image_bytes(p->image, b->addr, &bytes);
    if (have < b->size) return false;
    for (uint32_t at = 0; at < b->size; at += in.len) {
        uint32_t number = 0;
        if (p->isa->decode(bytes + at, b->size - at, b->addr + at, &in) > ISA_UNKNOWN) return false;
        if (in.bits & ISA_BIT_PCREL_MEM && in.target == b->addr) return true;
        if (in.imm_len == 4) memcpy(&number, in.raw + in.imm_at, 4);
        if (number && number == b->addr) return true;
    }
    return false;
}

bool move_compares_return(const cfg_program *p, const cfg_block *call)
{
    uint32_t behind = cfg_block_at(p, call->addr + call->size);
    return behind != CFG_NONE &&
           p->blocks[behind].proc == call->proc && /* the next one may name itself for its own ends */
           p->blocks[behind].flags & CFG_BLOCK_ADDRESS_TAKEN && names_itself(p, &p->blocks[behind]);
}

static bool has_landing_pads(const cfg_program *p, uint32_t proc)
{
    const cfg_proc *of = &p->procs[proc];
    for (uint32_t k = of->first_block; k < of->first_block + of->block_count; k++)
        if (p->blocks[k].flags & CFG_BLOCK_LANDING) return true;
    return false;
}

const char *move_lookups_of_proc(move_work *w, uint32_t proc)
{
    const char *name = move_cfg(w)->procs[proc].name;
    if (name && !strncmp(name, "Builtins_", 9)) return "its callers' return addresses are looked up (V8 built-in)";
    if (!w->looked_up[proc] && w->isa->asks_piece && asks_piece(w, proc)) w->looked_up[proc] = BY_PIECES;
    switch (w->looked_up[proc]) {
    case BY_DATA:
    case BY_PROFILE:
    case BY_SECTION:
        w->calls_stay[proc] = move_calls_can_stay(w) && !has_landing_pads(move_cfg(w), proc);
        if (w->calls_stay[proc]) return NULL;
        if (w->looked_up[proc] == BY_PROFILE)
            return "the program is profiled (-pg) by return addresses, and it catches exceptions";
        if (w->looked_up[proc] == BY_SECTION)
            return "it lies in a section with bounds (__start_NAME), which return addresses may be compared with, and "
                   "it "
                   "catches exceptions";
        return "data hold return addresses of its calls: something looks its frames up by them";
    case BY_STRETCH:
        return "no unwind table describes it nor what lies around it: something may look its return addresses up";
    case BY_STACK: return "it belongs to a run time with stacks of its own, which may look its return addresses up";
    case BY_FENCE: return "it lies between fences of traps: something translates it for others to run";
    case BY_SLEDS: return "the program may write calls into it while it runs (XRay)";
    case BY_COPIES: return "an address tells where it ends: the program may copy it, to run the copy";
    case BY_PIECES:
        return "its stack grows by pieces (-fsplit-stack): what it calls for that goes on behind where it would return "
               "to";
    default: return NULL;
    }
}
