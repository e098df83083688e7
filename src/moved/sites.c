/* System calls in code that is not instrumented: the C library when only the program was rewritten, the
 * dynamic linker, procedures that were left alone, and those that moved as they are because they may run
 * before the tool. The calls that concern the tool, or may, become jumps to the gate, in this process's memory,
 * before there is a second thread.
 *
 *     mov  $231, %eax                     jmp  piece
 *     syscall                 ->          ...
 *
 *     piece:  mov  $231, %eax
 *             lea  1f(%rip), %rcx
 *             jmp  *%gs:MOVED_GATE
 *         1:  jmp  behind the syscall
 *
 * A site is looked at only where the procedure that it lies in is known (procedures.c) and decoding from
 * that procedure's start finds the instruction there; or where its number is loaded right in front of it: what begins
 * threads has often no unwind entry, and in a stripped program no name. Five bytes are taken that begin
 * with an instruction, hold the call, and are entered by no branch except at their start.
 *
 * The dynamic linker calls a procedure that does nothing whenever it has changed its list of libraries, for debuggers:
 * it becomes a call of the gate too, so that libraries that are loaded later are known and looked at as well. */
#include "moved/private.h"
#include "base/log.h"
#include "base/sys.h"
#include "base/page.h"
#include "base/search.h"
#include "move/live.h"
#include "moved/sites.h"
#include "moved/text.h"
#include INL_ARCH_HEADER(run, abi)

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    MOST_INSNS = 6000, /* of one moved_code */
    PIECES = 512,
    PIECES_OF_ALL = 2048, /* of one image; when the tool watches all calls */
    BACK = 6,
    FORTH = 4, /* instructions that may be taken along */
};

/* Instructions that lie in a piece now, each piece's one behind the other, the last one of each is where it goes back:
 * handlers of signals are shown the program's own. For a process that ran already, whose threads come and go in the
 * middle of it, also the bytes that were there, and the memory of pieces. */
typedef struct place {
    uint64_t old, new;
    bool ends;
} place;
enum { MOST_BYTES = 48 };
typedef struct replaced {
    uint64_t at, size;
    uint8_t before[MOST_BYTES], now[MOST_BYTES];
} replaced;
static INL_VEC(place) places;
static INL_VEC(replaced) replacements;
static INL_VEC(move_told_range) areas;

typedef struct area { /* memory for pieces near an image, being filled */
    uint64_t at, next, end;
    moved_text text;
} area;

/* --- decoding --- */

/* Is the code at `at` original code of a block that has moved? It is dead, and may be overwritten. The map
 * ascends by old addresses as well. */
static bool has_moved(const moved_image *i, uint64_t at)
{
    uint64_t count = i->map ? i->map->count : 0, off = at - i->map_base;
    size_t k = INL_FIRST(count, k, i->map->entries[k].old_off >= off);
    return k < count && i->map->entries[k].old_off == off;
}

/* Threads stand in it, or frames lead there. */
static bool may_run_old(const moved_image *i) { return moved_is_live() && !moved_later_of(i->bias); }

static bool is_direct(const isa_insn *in)
{
    return in->flow == ISA_FLOW_JUMP || in->flow == ISA_FLOW_COND || in->flow == ISA_FLOW_COND_REG ||
           in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_TX;
}

static bool decode(const moved_image *i, moved_code *p, uint64_t at)
{
    if (at >= p->start && at < p->end && p->count) return true; /* the last one's */
    const bool known = moved_procedure_at(i, at, &p->start, &p->end);
    /* (In front of one that has moved stands a jump, of which a part may look like a number that is loaded.) */
    if (!known && !may_run_old(i) && moved_to((real_addr){at}).at) return false;
    if (!known && !moved_lone_site(at, p->low, &p->start, &p->end)) return false;
    p->count = p->branch_count = 0;
    if (p->end > i->high || (!may_run_old(i) && has_moved(i, p->start))) return false;
    for (uint64_t pc = p->start; pc < p->end && p->count < MOST_INSNS;) {
        isa_insn *in = &p->insns[p->count];
        isa_result r = isa_for_machine(RUN_ELF_MACHINE)->decode((const uint8_t *)pc, p->end - pc, pc, in);
        if (r != ISA_OK && r != ISA_UNKNOWN) return p->count != 0;
        if (pc < at && at < pc + in->len) { /* the bytes are part of an instruction; procedures can be long */
            p->count = 0;
            return false;
        }
        if (is_direct(in)) p->branches[p->branch_count++] = p->count;
        pc += in->len;
        p->count++;
    }
    return p->count != 0;
}

static int index_of(const moved_code *p, uint64_t at)
{
    size_t i = INL_FIRST(p->count, k, p->insns[k].addr >= at);
    return i < p->count && p->insns[i].addr == at ? (int)i : -1;
}

/* Does a branch of the procedure lead to an address in [low, high)? */
static bool entered(const moved_code *p, uint64_t low, uint64_t high)
{
    for (unsigned b = 0; b < p->branch_count; b++) {
        uint64_t target = p->insns[p->branches[b]].target;
        if (target >= low && target < high) return true;
    }
    return false;
}

/* --- pieces --- */

static bool take_at(area *a, uint64_t at, uint64_t size)
{
    moved_text text;
    long p = moved_text_make(&text, at, size, false);
    if (!sys_failed(p) && p != (long)at) sys_call2(SYS_munmap, p, (long)size);
    if (p != (long)at) return false;
    *a = (area){at, at, at + size, text};
    return true;
}

/* Below the image, close by; or far above it: between, a program's heap grows. */
static bool take_area(area *a, const moved_image *i)
{
    uint64_t size = (moved_watches_syscalls() ? PIECES_OF_ALL : PIECES) * MOVED_PIECE, limit = MOVED_NEAR;
    uint64_t step = 16 * size, far = (limit - 1 - size) / step;
    bool taken = false;
    for (uint64_t k = 0; !taken && k <= far && size + k * step + (1 << 16) <= i->low; k++)
        taken = take_at(a, i->low - size - k * step, size);
    for (uint64_t k = far + 1; !taken && k-- > 0;) taken = take_at(a, inl_page_up(i->high) + size + k * step, size);
    return taken && inl_vec_push(&areas, ((move_told_range){a->at, a->end}));
}

static bool failed(const isa_code *c) { return c->full || c->unreachable; }

static void put_copy(isa_code *c, const isa_insn *in)
{
    uint8_t out[16], len = 0;
    const isa *set = isa_for_machine(RUN_ELF_MACHINE);
    if (in->flow != ISA_FLOW_NEXT || set->relocate(in, isa_here(c), out, &len) != ISA_MOVE_COPIED)
        c->unreachable = true;
    isa_put(c, out, len);
}

/* Whoever delivers a signal looks at places whenever it comes, also while another thread loads a library: what has been
 * outgrown stays where it is. */
static bool keep_place(place p)
{
    if (places.count == places.capacity) {
        size_t most = places.capacity ? 2 * places.capacity : 256;
        place *more = malloc(most * sizeof *more);
        if (!more) return false;
        if (places.count) memcpy(more, places.items, places.count * sizeof *more);
        __atomic_store_n(&places.items, more, __ATOMIC_RELEASE);
        places.capacity = most;
    }
    places.items[places.count] = p;
    __atomic_store_n(&places.count, places.count + 1, __ATOMIC_RELEASE);
    return true;
}

/* `at`: of each instruction from `from` on, and of the way back. */
static bool note_places(const moved_code *p, int from, int to, const uint64_t *at)
{
    const isa_insn *last = &p->insns[to - 1];
    for (int k = from; k < to; k++)
        if (!keep_place((place){p->insns[k].addr, at[k - from], false})) return false;
    return keep_place((place){last->addr + last->len, at[to - from], true});
}

static void overwrite(const moved_text *text, uint64_t at, const uint8_t *bytes, size_t size, uint64_t high)
{
    replaced r = {.at = at, .size = high - at};
    memset(r.now, MOVED_FILLER, sizeof r.now);
    memcpy(r.now, bytes, size);
    if (moved_is_live()) memcpy(r.before, (const void *)at, r.size);
    if (moved_is_live() && !inl_vec_push(&replacements, r)) return;
    moved_text_put(text, at, r.now, r.size);
}

/* With instructions [from, to) of the procedure; the site is among them. */
static bool patch_with(const moved_code *p, int from, int site, int to, area *a, const moved_text *text)
{
    uint64_t low = p->insns[from].addr, high = p->insns[to - 1].addr + p->insns[to - 1].len;
    if (high - low < MOVED_JUMP || high - low > MOST_BYTES || a->next + MOVED_PIECE > a->end ||
        entered(p, low + 1, high))
        return false;
    uint8_t piece[MOVED_PIECE], jump[MOVED_JUMP];
    uint64_t at[BACK + FORTH + 3];
    isa_code w = {.write = piece, .exec = a->next, .size = sizeof piece};
    isa_code over = {.write = jump, .exec = low, .size = sizeof jump};
    for (int k = from; k < to; k++) {
        at[k - from] = isa_here(&w);
        if (k == site && p->insns[k].flow == ISA_FLOW_SYSCALL) moved_put_gate(&w);
        else if (k == site) moved_put_other(&w, &p->insns[k]);
        else put_copy(&w, &p->insns[k]);
    }
    at[to - from] = isa_here(&w);
    moved_put_jump(&w, high);
    moved_put_jump(&over, w.exec);
    if (failed(&w) || failed(&over)) return false;
    if (!note_places(p, from, to, at)) return false;
    if (!moved_text_put(&a->text, w.exec, piece, w.at)) return false;
    a->next += MOVED_PIECE;
    overwrite(text, low, jump, MOVED_JUMP, high);
    return true;
}

static bool patch(const moved_code *p, int site, area *a, const moved_text *text)
{
    for (int forth = 0; forth <= FORTH; forth++)
        for (int back = 0; back <= BACK; back++) {
            int from = site - back, to = site + 1 + forth;
            if (from < 0 || to > (int)p->count) break;
            if (patch_with(p, from, site, to, a, text)) return true;
        }
    return false;
}

/* --- the whole --- */

static void patch_site(const moved_image *i, moved_code *p, uint64_t at, area *a, const moved_text *text)
{
    moved_now.sets_block |= !p->is_new && moved_sets_block((const uint8_t *)at);
    if (!decode(i, p, at)) return;
    int site = index_of(p, at);
    if (site < 0 || !moved_is_site(&p->insns[site])) return;
    bool is_call = p->insns[site].flow == ISA_FLOW_SYSCALL;
    if (is_call && !moved_watches_syscalls() && !moved_number_may_matter(p, site)) return;
    bool done = (a->at || take_area(a, i)) && patch(p, site, a, text);
    inl_log(INL_LOG_INJECT, "%s: %s at %#lx (%#lx)%s", i->name[0] ? i->name : "the program",
            is_call ? "system call" : "what leads to the thread's block", (long)at, (long)(at - i->bias),
            done ? "" : " cannot be patched");
    if (done) p->count = 0; /* its bytes have changed */
}

static void patch_segment(const moved_image *i, uint64_t low, uint64_t high, moved_code *p, area *a)
{
    moved_text text;
    const uint8_t *at = (const uint8_t *)low, *end = (const uint8_t *)high;
    const uint64_t *listed = NULL;
    const uint64_t count = moved_live_sites(i->bias, &listed);
    if (listed ? !count : !moved_next_site(at, end)) return; /* most images make none */
    if (!moved_text_open(&text, low, high)) {
        run_say(
            "%s: its system calls cannot be seen: memory that was written to may not become code here, and there is "
            "no /proc; what it does to threads and signals may end the program",
            i->name);
        return;
    }
    for (uint64_t k = 0; k < count; k++)
        if (i->bias + listed[k] - low < high - low) patch_site(i, p, i->bias + listed[k], a, &text);
    for (; !listed && (at = moved_next_site(at, end)); at++) patch_site(i, p, (uint64_t)(uintptr_t)at, a, &text);
    moved_text_close(&text);
}

static void patch_image(const moved_image *i, isa_insn *insns, uint32_t *branches)
{
    const Elf64_Phdr *ph = i->phdr;
    area a = {0};
    for (unsigned k = 0; k < i->phnum; k++) {
        uint64_t low = i->bias + ph[k].p_vaddr;
        bool is_new = i->text_size && i->text - low < ph[k].p_filesz;
        moved_code p = {.insns = insns, .branches = branches, .low = low, .is_new = is_new};
        if (ph[k].p_type != PT_LOAD || (ph[k].p_flags & (PF_X | PF_W)) != PF_X) continue;
        patch_segment(i, low, low + ph[k].p_filesz, &p, &a);
    }
    if (a.at) moved_text_close(&a.text);
}

/* --- libraries that are loaded later --- */

/* What the linker calls does nothing, for debuggers' sake: a return and padding. */
static bool does_nothing(uint64_t at)
{
    isa_insn in;
    for (uint64_t pc = at; pc < at + MOVED_JUMP; pc += in.len) {
        if (isa_for_machine(RUN_ELF_MACHINE)->decode((const uint8_t *)pc, 16, pc, &in) != ISA_OK) return false;
        if (pc == at ? in.flow != ISA_FLOW_RETURN : !moved_is_padding(&in)) return false;
    }
    return true;
}

static void hook_linker(void)
{
    uint8_t jump[MOVED_JUMP], piece[MOVED_PIECE];
    uint64_t at = moved_linker_tells();
    const moved_image *i = at ? moved_image_at(at) : NULL;
    area a = {0};
    if (!i || !moved_is_mapped(i, at, 32)) return;
    at += moved_mark_size((const uint8_t *)at);
    isa_code over = {.write = jump, .exec = at, .size = sizeof jump};
    if (does_nothing(at) && take_area(&a, i)) {
        isa_code w = {.write = piece, .exec = a.next, .size = sizeof piece};
        moved_now.linker_call = moved_put_call(&w);
        moved_put_jump(&over, w.exec);
        bool put = moved_text_put(&a.text, w.exec, piece, w.at);
        if (!moved_text_close(&a.text) || !put) over.at = 0;
    }
    moved_text text;
    if (over.at && !failed(&over) && moved_text_open(&text, at, at + MOVED_JUMP)) {
        overwrite(&text, at, jump, MOVED_JUMP, at + MOVED_JUMP);
        moved_text_close(&text);
        return;
    }
    inl_log(INL_LOG_INJECT, "%s does not tell of libraries that are loaded later", i->name);
}

uint64_t moved_site_place(uint64_t pc)
{
    for (size_t k = 0; k < places.count; k++)
        if (places.items[k].old == pc && !places.items[k].ends) return places.items[k].new;
    return 0;
}

bool moved_site_jumps(uint64_t pc)
{
    size_t count = __atomic_load_n(&places.count, __ATOMIC_ACQUIRE);
    const place *all = __atomic_load_n(&places.items, __ATOMIC_ACQUIRE);
    size_t k = 0;
    while (k < count && (all[k].ends ? all[k].new : all[k].old) != pc) k++;
    return k < count;
}

bool moved_site_original(uint64_t pc, bool exact, uint64_t *old)
{
    *old = 0;
    for (size_t k = 0; k < areas.count; k++)
        if (pc - areas.items[k].low < areas.items[k].high - areas.items[k].low) *old = 1;
    if (!*old) return false;
    *old = moved_site_of(pc, exact);
    return true;
}

static uint64_t old_of(const place *all, size_t count, uint64_t pc, bool exact)
{
    for (size_t k = 0; k < count; k++) {
        bool within = !exact && !all[k].ends && k + 1 < count && pc >= all[k].new &&pc < all[k + 1].new;
        if (all[k].new == pc || within) return all[k].old;
    }
    return 0;
}

uint64_t moved_site_of(uint64_t pc, bool exact)
{
    size_t count = __atomic_load_n(&places.count, __ATOMIC_ACQUIRE);
    return old_of(__atomic_load_n(&places.items, __ATOMIC_ACQUIRE), count, pc, exact);
}

uint64_t moved_site_there(uint64_t pc, moved_reader *read, const void *arg)
{
    __typeof__(places) its = {0};
    if (!read(arg, &places, &its, sizeof its) || !its.count) return 0;
    place *all = malloc(its.count * sizeof *all);
    bool good = all && read(arg, its.items, all, its.count * sizeof *all);
    uint64_t old = good ? old_of(all, its.count, pc, false) : 0;
    free(all);
    return old;
}

/* A byte is ours where it is what was put there, or where a jump of the plan's has been taken off it. What is another's
 * now, of a library that has gone, stays. */
void moved_sites_restore(int mem)
{
    for (size_t k = replacements.count; k-- > 0;) {
        const replaced *r = &replacements.items[k];
        uint8_t there[MOST_BYTES];
        bool good = sys_call4(SYS_pread64, mem, (long)there, (long)r->size, (long)r->at) == (long)r->size;
        for (uint64_t i = 0; i < r->size; i++) good = good && (there[i] == r->now[i] || there[i] == r->before[i]);
        if (good) sys_call4(SYS_pwrite64, mem, (long)r->before, (long)r->size, (long)r->at);
    }
}

uint64_t moved_site_areas(const move_told_range **all)
{
    *all = areas.items;
    return areas.count;
}

void moved_patch_sites(void)
{
    isa_insn *insns = malloc(MOST_INSNS * sizeof *insns);
    uint32_t *branches = malloc(MOST_INSNS * sizeof *branches);
    for (size_t i = 0; insns && branches && i < moved_now.image_count; i++) {
        if (moved_now.images[i].is_new) patch_image(&moved_now.images[i], insns, branches);
        moved_now.images[i].is_new = false;
    }
    if (!moved_now.knows_linker) hook_linker();
    moved_now.knows_linker = true;
    moved_procedures_done();
    free(insns);
    free(branches);
}
