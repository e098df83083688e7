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
 * that procedure's start finds the instruction there. Five bytes are taken that begin
 * with an instruction, hold the call, and are entered by no branch except at their start.
 *
 * The dynamic linker calls a procedure that does nothing whenever it has changed its list of libraries, for debuggers:
 * it becomes a call of the gate too, so that libraries that are loaded later are known and looked at as well. */
#include "moved/private.h"
#include "base/log.h"
#include "base/sys.h"
#include "isa/isa.h"
#include INL_ARCH_HEADER(run, abi)

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum {
    PAGE = 4096,
    JUMP = 5,
    MOST_INSNS = 6000, /* of one procedure */
    PIECE = 96,
    PIECES = 512,
    PIECES_OF_ALL = 2048, /* of one image; when the tool watches all calls */
    BACK = 6,
    FORTH = 4, /* instructions that may be taken along */
};

typedef struct area { /* memory for pieces near an image */
    uint64_t at, next, end;
} area;

typedef struct procedure {
    uint64_t start, end;
    isa_insn *insns;
    uint32_t *branches; /* those of insns that are direct branches */
    unsigned count, branch_count;
} procedure;

static const isa *set(void) { return isa_for_machine(RUN_ELF_MACHINE); }

/* --- decoding --- */

/* Is the code at `at` original code of a block that has moved? It is dead, and may be overwritten. The map
 * ascends by old addresses as well. */
static bool has_moved(const moved_image *i, uint64_t at)
{
    uint64_t low = 0, high = i->map ? i->map->count : 0, off = at - i->map_base;
    while (low < high) {
        uint64_t mid = low + (high - low) / 2;
        if (i->map->entries[mid].old_off < off) low = mid + 1;
        else high = mid;
    }
    return i->map && low < i->map->count && i->map->entries[low].old_off == off;
}

static bool is_direct(const isa_insn *in)
{
    return in->flow == ISA_FLOW_JUMP || in->flow == ISA_FLOW_COND || in->flow == ISA_FLOW_COND_REG ||
           in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_TX;
}

static bool decode(const moved_image *i, procedure *p, uint64_t at)
{
    if (at >= p->start && at < p->end && p->count) return true; /* the last one's */
    if (!moved_procedure_at(i, at, &p->start, &p->end)) return false;
    p->count = p->branch_count = 0;
    if (p->end > i->high || has_moved(i, p->start)) return false;
    for (uint64_t pc = p->start; pc < p->end && p->count < MOST_INSNS;) {
        isa_insn *in = &p->insns[p->count];
        isa_result r = set()->decode((const uint8_t *)pc, p->end - pc, pc, in);
        if (r != ISA_OK && r != ISA_UNKNOWN) return p->count != 0;
        if (is_direct(in)) p->branches[p->branch_count++] = p->count;
        pc += in->len;
        p->count++;
    }
    return p->count != 0;
}

static int index_of(const procedure *p, uint64_t at)
{
    unsigned low = 0, high = p->count;
    while (low < high) {
        unsigned mid = low + (high - low) / 2;
        if (p->insns[mid].addr < at) low = mid + 1;
        else high = mid;
    }
    return low < p->count && p->insns[low].addr == at ? (int)low : -1;
}

/* Does a branch of the procedure lead to an address in [low, high)? */
static bool entered(const procedure *p, uint64_t low, uint64_t high)
{
    for (unsigned b = 0; b < p->branch_count; b++) {
        uint64_t target = p->insns[p->branches[b]].target;
        if (target >= low && target < high) return true;
    }
    return false;
}

/* The number that an instruction puts into `reg`; -1: not a constant. */
static long constant_in(const isa_insn *in, unsigned reg)
{
    isa_operand o[ISA_MAX_OPERANDS];
    const char *name = set()->mnemonic(in->op);
    if (set()->operands(in, o) < 2 || o[0].kind != ISA_OPERAND_REG || o[0].reg != reg || o[0].size < 4) return -1;
    if (!strcmp(name, "xor") && o[1].kind == ISA_OPERAND_REG && o[1].reg == reg) return 0;
    if (strcmp(name, "mov") || o[1].kind != ISA_OPERAND_IMM) return -1;
    return (int32_t)o[1].imm;
}

/* The register that an instruction copies into `reg`; -1: it does something else. */
static int copied_into(const isa_insn *in, unsigned reg)
{
    isa_operand o[ISA_MAX_OPERANDS];
    if (strcmp(set()->mnemonic(in->op), "mov") || set()->operands(in, o) < 2) return -1;
    if (o[0].kind != ISA_OPERAND_REG || o[1].kind != ISA_OPERAND_REG || o[0].reg != reg || o[0].size < 4) return -1;
    return o[1].reg;
}

/* Where the search for a number has been. */
enum { MOST_SEEN = 64, RAX = 0, CALLEE_SAVED = 0xf028, SYSCALL_CLOBBERED = 0x803 };
typedef struct search {
    const procedure *p;
    struct {
        uint32_t at, reg;
    } seen[MOST_SEEN];
    unsigned count;
} search;

/* 1: been there; 0: not yet; -1: it takes too long. */
static int been(search *s, int at, unsigned reg)
{
    for (unsigned k = 0; k < s->count; k++)
        if (s->seen[k].at == (uint32_t)at && s->seen[k].reg == reg) return 1;
    if (s->count == MOST_SEEN) return -1;
    s->seen[s->count].at = (uint32_t)at;
    s->seen[s->count++].reg = reg;
    return 0;
}

static bool may_matter(search *s, int at, unsigned reg);

static bool is_padding(const isa_insn *in) { return !strcmp(set()->mnemonic(in->op), "nop"); }

/* By a branch to instruction `at`? */
static bool may_matter_by_branch(search *s, int at, unsigned reg, bool *branched)
{
    const procedure *p = s->p;
    for (unsigned b = 0; b < p->branch_count; b++) {
        const isa_insn *in = &p->insns[p->branches[b]];
        if (in->target != p->insns[at].addr) continue;
        *branched = true;
        if (in->flow == ISA_FLOW_CALL || may_matter(s, (int)p->branches[b], reg)) return true;
    }
    return false;
}

/* May the number in `reg` at instruction `at` be one that matters? All ways to there are followed back to
 * where it is set. */
static bool may_matter(search *s, int at, unsigned reg)
{
    for (int k = at;; k--) {
        int known = been(s, k, reg);
        if (known) return known < 0;
        bool branched = false;
        if (may_matter_by_branch(s, k, reg, &branched) || k == 0) return true;
        const isa_insn *in = &s->p->insns[k - 1];
        bool falls = in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_RETURN && in->flow != ISA_FLOW_TRAP;
        if (!falls) return !branched && !is_padding(&s->p->insns[k]); /* an indirect branch leads here */
        if (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND) {
            if (!(CALLEE_SAVED >> reg & 1)) return true;
            continue;
        }
        if (in->flow == ISA_FLOW_SYSCALL) {
            if (SYSCALL_CLOBBERED >> reg & 1) return true;
            continue;
        }
        if (in->flow == ISA_FLOW_JUMP_IND || in->flow == ISA_FLOW_FAR) return true;
        isa_effects fx;
        set()->effects(in, &fx);
        if (!(fx.writes >> reg & 1)) continue;
        int from = copied_into(in, reg);
        if (from < 0) return moved_syscall_matters(constant_in(in, reg));
        reg = (unsigned)from;
    }
}

/* --- pieces --- */

static bool take_area(area *a, const moved_image *i)
{
    uint64_t size = (moved_watches_syscalls() ? PIECES_OF_ALL : PIECES) * PIECE, limit = 0x70000000;
    for (uint64_t off = size; off < limit; off += 16 * size) {
        for (int above = 0; above < 2; above++) {
            uint64_t at = above ? ((i->high + PAGE - 1) & ~(uint64_t)(PAGE - 1)) + off : i->low - off;
            if (!above && off + (1 << 16) > i->low) continue;
            long p = sys_call(SYS_mmap, (long)at, (long)size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
            if (p == (long)at) {
                *a = (area){at, at, at + size};
                return true;
            }
            if (!sys_failed(p)) sys_call2(SYS_munmap, p, (long)size);
        }
    }
    return false;
}

typedef struct writer {
    uint64_t at;
    uint8_t bytes[PIECE + 32];
    unsigned size;
    bool failed;
} writer;

static void bytes(writer *w, const void *b, unsigned n)
{
    if (w->size + n > PIECE) w->failed = true;
    if (w->failed) return;
    memcpy(w->bytes + w->size, b, n);
    w->size += n;
}

static void jump(writer *w, uint64_t to)
{
    int64_t distance = (int64_t)(to - (w->at + w->size + JUMP));
    int32_t rel = (int32_t)distance;
    if (distance != rel) w->failed = true;
    bytes(w, "\xe9", 1);
    bytes(w, &rel, 4);
}

static void gate(writer *w)
{
    static const uint8_t lea[] = {0x48, 0x8d, 0x0d, 8, 0, 0, 0}; /* lea 8(%rip), %rcx */
    static const uint8_t jmp[] = {0x65, 0xff, 0x24, 0x25};       /* jmp *%gs:... */
    uint32_t at = MOVED_GATE;
    bytes(w, lea, sizeof lea);
    bytes(w, jmp, sizeof jmp);
    bytes(w, &at, 4);
}

static void moved(writer *w, const isa_insn *in)
{
    uint8_t out[16], len = 0;
    if (in->flow != ISA_FLOW_NEXT || set()->relocate(in, w->at + w->size, out, &len) != ISA_MOVE_COPIED)
        w->failed = true;
    bytes(w, out, len);
}

/* With instructions [from, to) of the procedure; the site is among them. */
static bool patch_with(const procedure *p, int from, int site, int to, area *a)
{
    uint64_t low = p->insns[from].addr, high = p->insns[to - 1].addr + p->insns[to - 1].len;
    if (high - low < JUMP || a->next + PIECE > a->end || entered(p, low + 1, high)) return false;
    writer w = {.at = a->next};
    for (int k = from; k < to; k++) {
        if (k == site) gate(&w);
        else moved(&w, &p->insns[k]);
    }
    jump(&w, high);
    writer over = {.at = low};
    jump(&over, w.at);
    if (w.failed || over.failed) return false;
    memcpy((void *)w.at, w.bytes, w.size);
    a->next += PIECE;
    memcpy((void *)low, over.bytes, JUMP);
    memset((void *)(low + JUMP), 0xcc, high - low - JUMP);
    return true;
}

static bool patch(const procedure *p, int site, area *a)
{
    for (int forth = 0; forth <= FORTH; forth++)
        for (int back = 0; back <= BACK; back++) {
            int from = site - back, to = site + 1 + forth;
            if (from < 0 || to > (int)p->count) break;
            if (patch_with(p, from, site, to, a)) return true;
        }
    return false;
}

/* --- the whole --- */

static void patch_site(const moved_image *i, procedure *p, uint64_t at, area *a)
{
    if (!decode(i, p, at)) return;
    int site = index_of(p, at);
    if (site < 0 || p->insns[site].flow != ISA_FLOW_SYSCALL) return;
    search s = {.p = p};
    if (!moved_watches_syscalls() && !may_matter(&s, site, RAX)) return;
    bool done = (a->at || take_area(a, i)) && patch(p, site, a);
    inl_log(INL_LOG_INJECT, "%s: system call at %#lx (%#lx)%s", i->name[0] ? i->name : "the program", (long)at,
            (long)(at - i->bias), done ? "" : " cannot be patched");
    if (done) p->count = 0; /* its bytes have changed */
}

static void patch_segment(const moved_image *i, uint64_t low, uint64_t high, procedure *p, area *a)
{
    uint64_t from = low & ~(uint64_t)(PAGE - 1), pages = ((high + PAGE - 1) & ~(uint64_t)(PAGE - 1)) - from;
    if (sys_call3(SYS_mprotect, (long)from, (long)pages, PROT_READ | PROT_WRITE)) return;
    const uint8_t *second; /* 0f 05; the second byte is the rarer one */
    for (uint64_t at = low + 1; at < high && (second = memchr((void *)at, 0x05, high - at)); at++) {
        at = (uint64_t)(uintptr_t)second;
        if (second[-1] == 0x0f) patch_site(i, p, at - 1, a);
    }
    sys_call3(SYS_mprotect, (long)from, (long)pages, PROT_READ | PROT_EXEC);
}

static void patch_image(const moved_image *i, isa_insn *insns, uint32_t *branches)
{
    const Elf64_Phdr *ph = i->phdr;
    area a = {0};
    for (unsigned k = 0; k < i->phnum; k++) {
        procedure p = {.insns = insns, .branches = branches};
        uint64_t low = i->bias + ph[k].p_vaddr;
        if (ph[k].p_type != PT_LOAD || (ph[k].p_flags & (PF_X | PF_W)) != PF_X) continue;
        patch_segment(i, low, low + ph[k].p_filesz, &p, &a);
    }
    if (a.at) sys_call3(SYS_mprotect, (long)a.at, (long)(a.end - a.at), PROT_READ | PROT_EXEC);
}

/* --- libraries that are loaded later --- */

uint64_t moved_linker_call;

/* What the linker calls does nothing, for debuggers' sake: a return and padding. */
static bool does_nothing(uint64_t at)
{
    isa_insn in;
    for (uint64_t pc = at; pc < at + JUMP; pc += in.len) {
        if (set()->decode((const uint8_t *)pc, 16, pc, &in) != ISA_OK) return false;
        if (pc == at ? in.flow != ISA_FLOW_RETURN : !is_padding(&in)) return false;
    }
    return true;
}

/* With all registers kept, as the linker may not expect that it does anything. */
static void write_call(writer *w)
{
    static const uint8_t before[] = {0x50, 0x51, 0x41, 0x53, 0xb8}, after[] = {0x41, 0x5b, 0x59, 0x58, 0xc3};
    uint32_t number = MOVED_IMAGES_CALL;
    bytes(w, before, sizeof before); /* push rax, rcx, r11; mov $number, %eax */
    bytes(w, &number, sizeof number);
    gate(w);
    moved_linker_call = w->at + w->size;
    bytes(w, after, sizeof after);
}

static void hook_linker(void)
{
    static const uint8_t endbr64[4] = {0xf3, 0x0f, 0x1e, 0xfa};
    uint64_t at = moved_linker_tells(), page;
    const moved_image *i = at ? moved_image_at(at) : NULL;
    area a = {0};
    if (!i || !moved_is_mapped(i, at, 32)) return;
    if (!memcmp((const void *)at, endbr64, sizeof endbr64)) at += sizeof endbr64;
    page = at & ~(uint64_t)(PAGE - 1);
    writer over = {.at = at};
    if (does_nothing(at) && take_area(&a, i)) {
        writer w = {.at = a.next};
        write_call(&w);
        jump(&over, w.at);
        memcpy((void *)w.at, w.bytes, w.size);
        sys_call3(SYS_mprotect, (long)a.at, (long)(a.end - a.at), PROT_READ | PROT_EXEC);
    }
    uint64_t pages = ((at + JUMP - 1) & ~(uint64_t)(PAGE - 1)) + PAGE - page;
    if (over.size && !over.failed && !sys_call3(SYS_mprotect, (long)page, (long)pages, PROT_READ | PROT_WRITE)) {
        memcpy((void *)at, over.bytes, JUMP);
        sys_call3(SYS_mprotect, (long)page, (long)pages, PROT_READ | PROT_EXEC);
        return;
    }
    inl_log(INL_LOG_INJECT, "%s does not tell of libraries that are loaded later", i->name);
}

void moved_patch_sites(void)
{
    static bool hooked;
    isa_insn *insns = malloc(MOST_INSNS * sizeof *insns);
    uint32_t *branches = malloc(MOST_INSNS * sizeof *branches);
    for (size_t i = 0; insns && branches && i < moved_images.count; i++) {
        if (moved_images.items[i].is_new) patch_image(&moved_images.items[i], insns, branches);
        moved_images.items[i].is_new = false;
    }
    if (!hooked) hook_linker();
    hooked = true;
    moved_procedures_done();
    free(insns);
    free(branches);
}
