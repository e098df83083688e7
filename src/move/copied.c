/* Code that the program copies, to run the copy.
 *
 *     start:  code ...     entered by its address only, if at all
 *     end:    padding      asked for by its address too: the distance of the two is what is copied
 *     next:
 *
 * CPython makes procedures for profilers so (-X perf), SBCL its breakpoints. A copy of a jump to new code would lead
 * astray, so such code stays as it is. It may be several pieces, each of which goes on with the next. A place behind a
 * call is no end, but where the call would come back to (OCaml's frame tables); and padding is also asked for where a
 * compiler has left it for calls to be written into (-fpatchable-function-entry), which a section lists. Where the next
 * procedure follows without padding, its address is taken for its own, and the code moves. */
#include "move/isa.h"

#include <stdlib.h>
#include <string.h>

static bool is_asked_for(const cfg_proc *of) { return of->flags & (CFG_PROC_ADDRESS_TAKEN | CFG_PROC_EXPORTED); }

/* The procedure's last block, if it ends where the next one begins. */
static const cfg_block *last_block(const cfg_program *p, uint32_t proc)
{
    const cfg_proc *of = &p->procs[proc];
    if (!of->block_count || of->addr + of->size != p->procs[proc + 1].addr) return NULL;
    const cfg_block *b = &p->blocks[of->first_block + of->block_count - 1];
    return b->addr + b->size == of->addr + of->size ? b : NULL;
}

static bool goes_on(const cfg_program *p, const cfg_block *b)
{
    for (uint32_t i = 0; i < b->edge_count; i++)
        if (p->edges[b->first_edge + i].kind == CFG_EDGE_FALL) return true;
    return false;
}

/* The address that a word holds: a relocation's, or the file's where nothing is relocated. */
static uint64_t held_at(image *im, uint64_t at, const uint8_t *bytes)
{
    const image_reloc *r = image_reloc_at(im, at);
    uint64_t word;
    memcpy(&word, bytes, sizeof word);
    return r ? r->value : word;
}

/* Notes which padding is left for calls. */
static void note_patchable(const cfg_program *p, uint8_t *of_procs)
{
    const image_section *s;
    size_t count = image_sections(p->image, &s);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        if (strcmp(s[i].name, "__patchable_function_entries") != 0) continue;
        size_t have = image_bytes(p->image, s[i].addr, &bytes);
        for (size_t at = 0; at + 8 <= s[i].size && at + 8 <= have; at += 8) {
            uint32_t k = cfg_proc_covering(p, held_at(p->image, s[i].addr + at, bytes + at));
            if (k != CFG_NONE) of_procs[k] = 1;
        }
    }
}

static bool is_end(const cfg_program *p, uint32_t proc)
{
    return is_asked_for(&p->procs[proc]) && !(p->procs[proc].flags & CFG_PROC_CALLED) && cfg_proc_is_padding(p, proc);
}

/* The pieces up to an end: marked, unless something calls them, or they are marked already. */
static void mark_pieces(const cfg_program *p, uint32_t end, uint8_t *marks, uint8_t with)
{
    uint32_t first = end - 1;
    const cfg_block *b;
    while (first && (b = last_block(p, first - 1)) && goes_on(p, b)) first--;
    if (!is_asked_for(&p->procs[first])) return;
    for (uint32_t i = first; i < end; i++)
        if (p->procs[i].flags & CFG_PROC_CALLED || marks[i]) return;
    memset(marks + first, with, end - first);
}

bool move_find_copied(const move_work *w, uint8_t *marks, uint8_t with)
{
    const cfg_program *p = move_cfg(w);
    uint8_t *patchable = calloc(p->proc_count, 1);
    if (!patchable) return false;
    note_patchable(p, patchable);
    for (uint32_t end = 1; end < p->proc_count; end++) {
        const cfg_block *b = last_block(p, end - 1);
        if (b && !(b->flags & CFG_BLOCK_CALL) && is_end(p, end) && !patchable[end]) mark_pieces(p, end, marks, with);
    }
    free(patchable);
    return true;
}
