/* cfg_steps [-e] PROGRAM [ARGS]: the whole-program analysis against what really happens.
 *
 * Runs PROGRAM one instruction at a time and compares every step with the analysis of the image it is in
 * (the program and all its libraries):
 *
 *   - an instruction that is executed inside a procedure that is whole was found, as an instruction;
 *   - a step inside such a procedure goes to the next instruction of the block, or is one of its edges;
 *   - whoever comes into it from elsewhere comes to its entry, behind a call that may return, or to a
 *     block that is known to be entered from outside;
 *   - whoever leaves it does so where the analysis says that it may.
 *
 * -e: from the program's entry on, without what the dynamic linker does before.
 *
 * Prints the first few differences and a summary; status 1 if there was a difference. */
#include "../support/x86_64/cpuid.h"
#include "cfg/program.h"

#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <stdbool.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct module {
    char path[256];
    uint64_t bias, low, high; /* run-time range of its text */
    image *image;
    cfg_program *program;
    uint8_t *starts; /* by address from low: an instruction begins here; 2: its block's last */
} module;

enum { max_modules = 64, max_told = 20 };
static module modules[max_modules];
static size_t module_count;
static pid_t child;
static uint64_t steps, seen, told;
static uint64_t whole_steps;

static void die(const char *what)
{
    fprintf(stderr, "cfg_steps: %s: %s\n", what, strerror(errno));
    exit(2);
}

static void tell(const module *m, uint64_t from, uint64_t to, const char *what)
{
    if (told++ >= max_told) return;
    printf("%s: %" PRIx64 " -> %" PRIx64 ": %s\n", m->path, from - m->bias, to - m->bias, what);
}

static void find_starts(module *m)
{
    const cfg_program *p = m->program;
    m->starts = calloc(m->high - m->low, 1);
    if (!m->starts) die("memory");
    for (uint32_t i = 0; i < p->block_count; i++) {
        const cfg_block *b = &p->blocks[i];
        uint64_t a = b->addr, end = b->addr + b->size;
        while (a < end) {
            const uint8_t *bytes;
            isa_insn in;
            size_t have = image_bytes(m->image, a, &bytes);
            isa_result r = p->isa->decode(bytes, have, a, &in);
            if ((r != ISA_OK && r != ISA_UNKNOWN) || a + m->bias - m->low >= m->high - m->low) break;
            m->starts[a + m->bias - m->low] = a + in.len == end ? 2 : 1;
            a += in.len;
        }
        if (a != end) tell(m, b->addr + m->bias, end + m->bias, "a block's instructions do not fill it");
    }
}

static void open_module(module *m, const char *path, uint64_t start, uint64_t offset)
{
    inl_error e;
    const image_segment *s;
    snprintf(m->path, sizeof m->path, "%s", path);
    if (image_open(path, &m->image, &e) != INL_OK) return;
    size_t count = image_segments(m->image, &s);
    for (size_t i = 0; i < count; i++)
        if (s[i].exec && (s[i].file_offset & ~4095ull) == offset) m->bias = start - (s[i].addr & ~4095ull);
    if (cfg_program_analyse(m->image, NULL, &m->program, &e) != INL_OK) {
        printf("%s: %s\n", path, e.text);
        exit(1);
    }
    find_starts(m);
}

static void read_maps(void)
{
    char path[40], line[512], name[256];
    snprintf(path, sizeof path, "/proc/%d/maps", child);
    FILE *f = fopen(path, "r");
    if (!f) return;
    while (fgets(line, sizeof line, f)) {
        uint64_t start, end, offset;
        char perms[5];
        name[0] = 0;
        sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %255s", &start, &end, perms, &offset, name);
        bool known = false;
        for (size_t i = 0; i < module_count; i++) known |= modules[i].low == start;
        if (perms[2] != 'x' || name[0] != '/' || known || module_count == max_modules) continue;
        module *m = &modules[module_count++];
        m->low = start;
        m->high = end;
        open_module(m, name, start, offset);
    }
    fclose(f);
}

static const module *module_at(uint64_t pc)
{
    static const module *last;
    static uint64_t missed;
    if (last && pc >= last->low && pc < last->high) return last;
    for (int again = 0; again < 2; again++) {
        for (size_t i = 0; i < module_count; i++)
            if (pc >= modules[i].low && pc < modules[i].high) return last = &modules[i];
        if (pc >> 12 == missed) return NULL;
        read_maps();
    }
    missed = pc >> 12;
    return NULL;
}

typedef struct place {
    const module *m;
    uint32_t block, proc;
    bool whole, known, last; /* an instruction's start; its block's last */
    uint64_t pc, link;
} place;

static place look_up(uint64_t pc)
{
    place p = {.pc = pc, .block = CFG_NONE, .proc = CFG_NONE};
    p.m = module_at(pc);
    if (!p.m || !p.m->program) {
        p.m = NULL;
        return p;
    }
    p.link = pc - p.m->bias;
    p.block = cfg_block_covering(p.m->program, p.link);
    p.proc = cfg_proc_covering(p.m->program, p.link);
    p.whole = p.proc != CFG_NONE && p.m->program->procs[p.proc].status == CFG_PROC_WHOLE;
    if (p.block != CFG_NONE && !p.m->starts[pc - p.m->low] && cfg_block_at(p.m->program, p.link) == p.block) {
        p.link--; /* a lock prefix was skipped */
        pc--;
    }
    p.known = p.block != CFG_NONE && p.m->starts[pc - p.m->low];
    p.last = p.known && p.m->starts[pc - p.m->low] == 2;
    return p;
}

static bool has_edge(const cfg_program *p, uint32_t block, uint64_t to)
{
    const cfg_block *b = &p->blocks[block];
    for (unsigned i = 0; i < b->edge_count; i++)
        if (p->edges[b->first_edge + i].target == to) return true;
    return false;
}

/* Is this the place behind a call that may return? */
static bool behind_call(const cfg_program *p, uint64_t link)
{
    uint32_t b = cfg_block_covering(p, link - 1);
    return b != CFG_NONE && p->blocks[b].addr + p->blocks[b].size == link && p->blocks[b].flags & CFG_BLOCK_CALL &&
           !(p->blocks[b].flags & CFG_BLOCK_NO_RETURN);
}

enum {
    entered = CFG_BLOCK_ENTRY | CFG_BLOCK_ADDRESS_TAKEN | CFG_BLOCK_OUTSIDE | CFG_BLOCK_LANDING | CFG_BLOCK_TABLE,
    left = CFG_BLOCK_CALL | CFG_BLOCK_RETURN | CFG_BLOCK_TAIL_IND
};

/* `from` is in a procedure that is whole. */
static void check_leaving(const place *from, const place *to)
{
    const cfg_program *p = from->m->program;
    const cfg_block *b = &p->blocks[from->block];
    if (!from->last) {
        tell(from->m, from->pc, to->pc, "leaves in the middle of a block");
    } else if (!(b->flags & left) && !(to->m == from->m && has_edge(p, from->block, to->link))) {
        tell(from->m, from->pc, to->pc, "leaves where it should not");
    }
}

static void check_entering(const place *from, const place *to)
{
    const cfg_program *p = to->m->program;
    const cfg_block *b = &p->blocks[to->block];
    if (b->addr == to->link && b->flags & entered) return;
    if (behind_call(p, to->link) && b->addr == to->link) return;
    tell(to->m, from->pc, to->pc, "enters where nobody should");
}

static void check_inside(const place *from, const place *to, uint64_t next)
{
    const cfg_program *p = from->m->program;
    const cfg_block *b = &p->blocks[from->block];
    if (!from->last) {
        if (to->pc != next && to->pc != from->pc) tell(from->m, from->pc, to->pc, "a jump inside a block");
        return;
    }
    if (to->pc == from->pc && to->link != b->addr) return; /* a repeated string instruction */
    if (has_edge(p, from->block, to->link) || to->pc == from->pc) return;
    if (b->flags & (CFG_BLOCK_CALL | CFG_BLOCK_RETURN | CFG_BLOCK_TAIL_IND)) { /* recursion */
        check_entering(from, to);
        return;
    }
    tell(from->m, from->pc, to->pc, "no such edge");
}

static uint64_t behind(const place *p)
{
    const uint8_t *bytes;
    isa_insn in;
    size_t have = image_bytes(p->m->image, p->link, &bytes);
    p->m->program->isa->decode(bytes, have, p->link, &in);
    return p->link + p->m->bias + in.len;
}

static void check(const place *from, const place *to)
{
    if (to->m) seen++;
    if (to->whole) {
        whole_steps++;
        if (!to->known) {
            tell(to->m, from->pc, to->pc, "an unknown instruction");
            return;
        }
    }
    bool same = from->m && from->m == to->m && from->proc == to->proc;
    bool from_good = from->whole && from->known, to_good = to->whole && to->known;
    if (same && from_good && to_good) {
        check_inside(from, to, behind(from));
        return;
    }
    if (from_good && from->m) check_leaving(from, to);
    if (to_good && from->pc) check_entering(from, to);
}

/* An instruction that a step might not stop behind (cpuid.h) has been carried out. */
static bool step_instead(const place *at, const struct user_regs_struct *regs)
{
    const uint8_t *code;
    return at->m && image_bytes(at->m->image, at->link, &code) >= 2 && step_cpuid(child, code, regs);
}

/* What /proc/PID/auxv says of `type`. */
static uint64_t auxv_of_child(uint64_t type)
{
    char path[32];
    uint64_t pair[2], found = 0;
    snprintf(path, sizeof path, "/proc/%d/auxv", (int)child);
    FILE *f = fopen(path, "r");
    while (f && !found && fread(pair, sizeof pair, 1, f) == 1 && pair[0] != AT_NULL)
        if (pair[0] == type) found = pair[1];
    if (!found) die(path);
    fclose(f);
    return found;
}

/* Runs the child up to its entry, over a breakpoint. */
static void run_to_entry(void)
{
    struct user_regs_struct regs;
    uint64_t entry = auxv_of_child(AT_ENTRY);
    int status = 0;
    errno = 0;
    long bytes = ptrace(PTRACE_PEEKTEXT, child, (void *)entry, NULL);
    if (errno || ptrace(PTRACE_POKETEXT, child, (void *)entry, (void *)((bytes & ~0xffl) | 0xcc))) die("breakpoint");
    if (ptrace(PTRACE_CONT, child, NULL, NULL) != 0 || waitpid(child, &status, 0) != child) die("continue");
    if (!WIFSTOPPED(status) || ptrace(PTRACE_GETREGS, child, NULL, &regs) != 0 || regs.rip != entry + 1) {
        fputs("cfg_steps: the program did not come to its entry\n", stderr);
        exit(2);
    }
    regs.rip = entry;
    ptrace(PTRACE_POKETEXT, child, (void *)entry, (void *)bytes);
    ptrace(PTRACE_SETREGS, child, NULL, &regs);
}

static void run(void)
{
    struct user_regs_struct regs;
    place from = {0};
    int status, deliver = 0;
    for (;;) {
        if (ptrace(PTRACE_GETREGS, child, NULL, &regs) != 0) die("registers");
        place to = look_up(regs.rip);
        if (deliver) from = (place){0};
        check(&from, &to);
        from = to;
        steps++;
        if (!deliver && step_instead(&to, &regs)) continue;
        if (ptrace(PTRACE_SINGLESTEP, child, NULL, (long)deliver) != 0) die("step");
        if (waitpid(child, &status, 0) != child) die("wait");
        if (!WIFSTOPPED(status)) return;
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
    }
}

int main(int argc, char **argv)
{
    bool from_entry = argc > 1 && !strcmp(argv[1], "-e");
    argv += from_entry;
    if (argc < 2 + from_entry) {
        fputs("usage: cfg_steps [-e] PROGRAM [ARGS]\n", stderr);
        return 2;
    }
    cpu_set_t one; /* a step is two context switches: both on one processor */
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
    child = fork();
    if (child < 0) die("fork");
    if (child == 0) {
        personality(ADDR_NO_RANDOMIZE);
        if (!freopen("/dev/null", "w", stdout)) _exit(127);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[1], argv + 1);
        _exit(127);
    }
    int status;
    if (waitpid(child, &status, 0) != child || !WIFSTOPPED(status)) die(argv[1]);
    ptrace(PTRACE_SETOPTIONS, child, NULL, (long)PTRACE_O_EXITKILL);
    if (from_entry) run_to_entry();
    run();
    printf("%" PRIu64 " steps, %" PRIu64 " in %zu images, %" PRIu64 " in whole procedures, %" PRIu64 " differences\n",
           steps, seen, module_count, whole_steps, told);
    for (size_t i = 0; i < module_count; i++) {
        cfg_program_free(modules[i].program);
        image_close(modules[i].image);
        free(modules[i].starts);
    }
    return told != 0;
}
