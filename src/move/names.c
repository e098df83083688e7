/* Who may name a procedure's new code instead of its old entry.
 *
 * A call that goes by a name (through a PLT, from another image) would reach the old entry and jump on from
 * there. Where everything that yields the entry's address can be made to yield the new one, the writer makes
 * the dynamic symbols say so (`renamed`). Everything, since programs compare addresses of procedures: a
 * pointer that is taken here must equal one that is taken in another image. What is known to name an entry:
 *
 *     dynamic symbol, and relocations by it     the writer changes the symbol
 *     lea in a resolver (IFUNC)                 re-aimed here, in the new code; a resolver only yields what
 *                                               it names
 *     another lea, a relocation without symbol  the procedure keeps its old entry: from such addresses others
 *                                               may be computed
 *     a word that holds the distance to it      likewise
 *
 * Code that is not understood is searched for the bytes of such a lea. Nor is a procedure renamed whose caller
 * may look at what surrounds it: one that has something else than code or padding right in front (tables that
 * are found from the entry), and one that only jumps (an entry of a table of jumps, whose distances are
 * known). New entries keep the low four bits of the old ones, where pointers may carry marks.
 *
 * The old entry is caught all the same, so what was overlooked still runs. Where procedures come and go, or nobody
 * writes symbols, none is renamed: pointers to new code would stay behind.
 */
#include "move/isa.h"

#include <elf.h>
#include <string.h>

enum { NAMED = 1, KEPT = 2 };

typedef struct naming {
    move_work *w;
    uint8_t *bits;          /* per procedure */
    INL_VEC(uint64_t) leas; /* of resolvers, link-time addresses */
    uint64_t low, high;     /* of the procedures */
    bool failed;
} naming;

/* The procedure that begins at an address. */
static uint32_t entered(const naming *n, uint64_t addr)
{
    const cfg_program *p = move_cfg(n->w);
    if (addr - n->low >= n->high - n->low) return CFG_NONE;
    uint32_t b = cfg_block_at(p, addr);
    if (b == CFG_NONE || p->procs[p->blocks[b].proc].addr != addr) return CFG_NONE;
    return p->blocks[b].proc;
}

static void keep(naming *n, uint64_t entry)
{
    uint32_t proc = entered(n, entry);
    if (proc != CFG_NONE) n->bits[proc] |= KEPT;
}

/* --- symbols, relocations --- */

static void look_at_symbols(naming *n)
{
    const image_code_symbol *s;
    size_t count = image_code_symbols(move_cfg(n->w)->image, &s);
    for (size_t i = 0; i < count; i++) {
        uint32_t proc = s[i].dynamic ? entered(n, s[i].addr) : CFG_NONE;
        if (proc != CFG_NONE) n->bits[proc] |= s[i].function ? NAMED : KEPT;
    }
}

/* False: there are relocations of which it is not known what they name. */
static bool look_at_relocations(naming *n)
{
    const image_reloc *r;
    size_t count = image_relocs(move_cfg(n->w)->image, &r);
    for (size_t i = 0; i < count; i++) {
        switch (n->w->isa->reloc(r[i].type)) {
        case MOVE_RELOC_WORD:
            if (r[i].addend) keep(n, r[i].value - r[i].addend);
            if (r[i].addend) keep(n, r[i].value);
            break;
        case MOVE_RELOC_ADDRESS: keep(n, r[i].value); break;
        case MOVE_RELOC_SYMBOL:
        case MOVE_RELOC_NOTHING: break;
        case MOVE_RELOC_UNKNOWN: return false;
        }
    }
    return true;
}

static bool look_at_startup(naming *n)
{
    image *im = move_cfg(n->w)->image;
    size_t count = image_startup(im, NULL, 0);
    uint64_t *list = calloc(count + 1, sizeof *list);
    if (!list) return false;
    image_startup(im, list, count);
    for (size_t i = 0; i < count; i++) keep(n, list[i]);
    keep(n, image_entry(im));
    free(list);
    return true;
}

/* --- code --- */

/* The lea that has its opcode at `at`, in a resolver that has moved? */
static bool in_resolver(const naming *n, uint64_t at, uint64_t entry, isa_insn *in)
{
    const cfg_program *p = move_cfg(n->w);
    const uint8_t *bytes;
    uint32_t block = cfg_block_covering(p, at);
    if (block == CFG_NONE) return false;
    const cfg_block *b = &p->blocks[block];
    if (!(p->procs[b->proc].flags & CFG_PROC_IFUNC) || !move_is_moved(n->w, b->proc)) return false;
    size_t avail = image_bytes(p->image, b->addr, &bytes);
    for (uint32_t off = 0; off < b->size && off < avail; off += in->len) {
        if (p->isa->decode(bytes + off, avail - off, b->addr + off, in) > ISA_UNKNOWN) return false;
        if (in->addr <= at && at < in->addr + in->len) return n->w->isa->is_name(in, at) && in->target == entry;
    }
    return false;
}

/* The copy of a lea that names an entry; NULL when it is not found. */
static uint8_t *copied_lea(const naming *n, uint64_t at, isa_insn *in, uint64_t *entry)
{
    move_work *w = n->w;
    uint64_t now = move_new_address(&w->plan, move_assume(&w->plan, (link_addr){at}), true).at,
             off = now - w->plan.text_addr;
    if (!now || off >= w->plan.text_size) return NULL;
    uint8_t *bytes = w->plan.text + off;
    if (move_cfg(w)->isa->decode(bytes, w->plan.text_size - off, now, in) != ISA_OK || !w->isa->is_name(in, 0))
        return NULL;
    *entry = in->target - w->plan.bias;
    return bytes;
}

static void look_at_lea(naming *n, uint64_t at, uint64_t entry)
{
    uint32_t proc = entered(n, entry);
    uint64_t found;
    isa_insn in, copy;
    if (proc == CFG_NONE) return;
    if (!in_resolver(n, at, entry, &in) || !copied_lea(n, in.addr, &copy, &found) || found != entry) {
        n->bits[proc] |= KEPT;
        return;
    }
    n->bits[proc] |= NAMED;
    if (!inl_vec_push(&n->leas, in.addr)) n->failed = true;
}

static int32_t word_at(const uint8_t *at)
{
    int32_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/* Wherever its bytes stand. */
static void look_at_code(naming *n, uint64_t addr, const uint8_t *bytes, size_t size)
{
    uint64_t named;
    for (size_t i = 0; (i = n->w->isa->find_name(bytes, size, i, addr, &named)) < size; i++)
        look_at_lea(n, addr + i, named);
}

static bool in_jump_table(const cfg_program *p, uint64_t at)
{
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (t->kind != CFG_TABLE_CODE && at - t->table < (uint64_t)t->count * t->entry_size) return true;
    }
    return false;
}

/* Distances, as tables hold them that need no relocation; those of the unwind tables are no pointers, those
 * of jump tables are counted from elsewhere. */
static void look_at_data(naming *n, uint64_t addr, const uint8_t *bytes, size_t size)
{
    for (size_t i = -addr & 3; i + 4 <= size; i += 4) {
        uint64_t entry = addr + i + (uint64_t)(int64_t)word_at(bytes + i);
        uint32_t proc = word_at(bytes + i) ? entered(n, entry) : CFG_NONE;
        if (proc == CFG_NONE || n->bits[proc] & KEPT || in_jump_table(move_cfg(n->w), addr + i)) continue;
        n->bits[proc] |= KEPT;
    }
}

static bool tells_unwinding(const image_section *s)
{
    return !strcmp(s->name, ".eh_frame") || !strcmp(s->name, ".eh_frame_hdr");
}

/* False: the file does not say what its parts are. */
static bool look_at_bytes(naming *n)
{
    image *im = move_cfg(n->w)->image;
    const image_section *s;
    const uint8_t *bytes;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++) {
        if (!(s[i].flags & SHF_ALLOC) || s[i].type == SHT_NOBITS || tells_unwinding(&s[i])) continue;
        size_t have = image_bytes(im, s[i].addr, &bytes);
        if (have > s[i].size) have = s[i].size;
        if (s[i].flags & SHF_EXECINSTR) look_at_code(n, s[i].addr, bytes, have);
        else look_at_data(n, s[i].addr, bytes, have);
    }
    return count > 1;
}

/* --- the procedure itself --- */

static bool only_jumps(const move_work *w, const cfg_proc *of)
{
    const cfg_program *p = move_cfg(w);
    const uint8_t *bytes;
    size_t have = image_bytes(p->image, of->addr, &bytes);
    isa_insn in;
    size_t at = w->isa->mark_size(bytes, have);
    if (p->isa->decode(bytes + at, have - at, of->addr + at, &in) > ISA_UNKNOWN) return true;
    return in.flow == ISA_FLOW_JUMP || in.flow == ISA_FLOW_JUMP_IND;
}

static bool can_be_renamed(const move_work *w, uint32_t proc)
{
    const cfg_program *p = move_cfg(w);
    const cfg_proc *of = &p->procs[proc], *before = of - 1;
    const move_proc *now = &w->plan.procs[proc];
    if (!now->new_addr || of->flags & (CFG_PROC_IFUNC | CFG_PROC_PLT)) return false;
    if ((now->new_addr ^ move_assumed(w, of->addr)) & 15) return false;
    if (!proc || before->addr + before->size + before->padding != of->addr) return false;
    return !only_jumps(w, of);
}

/* --- all of it --- */

static void rename_all(naming *n)
{
    move_work *w = n->w;
    for (uint32_t i = 0; i < move_cfg(w)->proc_count; i++)
        w->plan.procs[i].renamed = n->bits[i] == NAMED && can_be_renamed(w, i);
    for (size_t i = 0; i < n->leas.count; i++) {
        uint64_t entry;
        isa_insn in;
        uint8_t *bytes = copied_lea(n, n->leas.items[i], &in, &entry);
        uint32_t proc = bytes ? entered(n, entry) : CFG_NONE;
        if (proc == CFG_NONE || !w->plan.procs[proc].renamed) continue;
        w->isa->aim(bytes, &in, w->plan.procs[proc].new_addr);
    }
}

bool move_find_names(move_work *w)
{
    const cfg_program *p = move_cfg(w);
    naming n = {.w = w};
    if (w->target->one_by_one || w->target->outside_stays || w->goes_back != CFG_NONE ||
        image_type(p->image) != ET_DYN || !w->isa->find_name || !p->proc_count)
        return true;
    n.low = p->procs[0].addr, n.high = p->procs[p->proc_count - 1].addr + 1;
    n.bits = calloc(p->proc_count, 1);
    if (!n.bits) return false;
    look_at_symbols(&n);
    bool known = look_at_relocations(&n) && look_at_bytes(&n);
    if (!look_at_startup(&n)) n.failed = true;
    if (known && !n.failed) rename_all(&n);
    free(n.bits);
    inl_vec_free(&n.leas);
    return !n.failed;
}
