/* stepper [--accesses FILE] [-o FILE] [--] PROGRAM [ARGS]
 *
 * Runs PROGRAM one instruction at a time and writes what it did, one fact a line:
 *
 *     instructions 1234
 *     accesses 345 0011223344556677        number and FNV-1a hash of the access lines
 *     status 0                             exit status, or 128 + the signal it died of
 *     map START END OFFSET PATH            executable mappings, as last seen
 *     blocks 123                           how often one begins (docs/glossary.md)
 *     mnemonic NAME COUNT                  of one address; several lines may name one
 *     pc ADDRESS COUNT                     sorted
 *     block ADDRESS COUNT                  how often one begins there; sorted
 *     taken ADDRESS COUNT                  conditional branches, those that are taken
 *     edge FROM TO COUNT                   indirect jumps and calls, returns; sorted
 *
 * --accesses FILE writes the access lines, in the form of the memtrace tool:
 *
 *     PC R|W ADDRESS SIZE[ xCOUNT]         COUNT: iterations of REP
 *
 * On AArch64 there are no accesses and no mnemonics. Single-threaded programs only. Code bytes are read once and read
 * again after a system call that changes mappings, so code that rewrites itself in a writable mapping is not followed.
 *
 * A step costs two context switches and dominates everything: both processes stay on one processor. */
#include "stepper.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct place {
    uint64_t pc, count, begun, taken;
    step_kind kind;
    unsigned length;
    uint8_t code[15], code_size; /* the instruction's bytes, 0 when not read yet */
} place;

/* Counts by address: open addressing, grown at half full. */
typedef struct places {
    place *at;
    size_t size, used;
} places;

typedef struct stepper {
    pid_t pid;
    places places;
    step_edges edges;
    bool begins; /* with the next instruction a block does */
    uint64_t instructions, blocks, accesses, hash;
    bool knows_accesses, told_twice;
    FILE *access_file;
    uint64_t rep_pc; /* the REP instruction that is under way, 0 when none */
    char *maps;
} stepper;

static void die(const char *what)
{
    fprintf(stderr, "stepper: %s: %s\n", what, strerror(errno));
    exit(1);
}

static place *find_place(places *p, uint64_t pc)
{
    size_t i = (pc * 0x9e3779b97f4a7c15u >> 20) & (p->size - 1);
    while (p->at[i].pc && p->at[i].pc != pc) i = (i + 1) & (p->size - 1);
    return &p->at[i];
}

static void grow_places(places *p)
{
    places bigger = {NULL, p->size ? p->size * 2 : 1 << 16, p->used};
    bigger.at = calloc(bigger.size, sizeof *bigger.at);
    if (!bigger.at) die("memory");
    for (size_t i = 0; i < p->size; i++) {
        if (p->at[i].pc) *find_place(&bigger, p->at[i].pc) = p->at[i];
    }
    free(p->at);
    *p = bigger;
}

/* The place of `pc`, made when it is new; valid until the next call. */
static place *get_place(places *p, uint64_t pc)
{
    if (p->used * 2 >= p->size) grow_places(p);
    place *q = find_place(p, pc);
    if (!q->pc) {
        q->pc = pc;
        p->used++;
    }
    return q;
}

static void forget_code(places *p)
{
    for (size_t i = 0; i < p->size; i++) p->at[i].code_size = 0;
}

static void note_access(stepper *s, uint64_t pc, const step_access *a)
{
    char line[96];
    int n = snprintf(line, sizeof line, "%" PRIx64 " %c %" PRIx64 " %u", pc, a->write ? 'W' : 'R', a->address, a->size);
    if (a->count != 1) n += snprintf(line + n, sizeof line - (size_t)n, " x%u", a->count);
    line[n++] = '\n';
    line[n] = 0;
    for (int i = 0; i < n; i++) s->hash = (s->hash ^ (uint8_t)line[i]) * 0x100000001b3u;
    s->accesses++;
    if (s->access_file) fputs(line, s->access_file);
}

static size_t read_code(pid_t pid, uint64_t at, uint8_t code[15])
{
    struct iovec to = {code, 15}, from = {(void *)at, 15};
    ssize_t n = process_vm_readv(pid, &to, 1, &from, 1, 0);
    if (n < 0) { /* the page behind may be missing */
        from.iov_len = to.iov_len = 4096 - at % 4096 < 15 ? 4096 - at % 4096 : 15;
        n = process_vm_readv(pid, &to, 1, &from, 1, 0);
    }
    if (n < 0) { /* vsyscall and other pages that only ptrace reads */
        errno = 0;
        long word = ptrace(PTRACE_PEEKTEXT, pid, at, NULL);
        if (errno) return 0;
        memcpy(code, &word, n = sizeof word);
    }
    return (size_t)n;
}

static void read_maps(stepper *s)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/%d/maps", s->pid);
    FILE *f = fopen(path, "r");
    if (!f) return;
    char *text = NULL, *line = NULL;
    size_t size = 0, line_size = 0;
    FILE *out = open_memstream(&text, &size);
    while (getline(&line, &line_size, f) > 0) {
        uint64_t start, end, offset;
        char perms[5];
        int at = 0;
        if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &start, &end, perms, &offset, &at) < 4 ||
            perms[2] != 'x')
            continue;
        const char *name = at ? line + at : "\n";
        fprintf(out, "map %" PRIx64 " %" PRIx64 " %" PRIx64 " %s", start, end, offset, *name ? name : "\n");
    }
    fclose(out);
    fclose(f);
    free(line);
    free(s->maps);
    s->maps = text;
}

/* An instruction on its way: where, what it touches, whether it repeats. */
typedef struct step {
    uint64_t pc;
    step_kind kind;
    unsigned length;
    int n;
    bool is_rep, changes_mappings;
    step_access list[STEP_MAX_ACCESSES];
} step;

/* The place of `pc`, with its code. */
static place *known_place(stepper *s, uint64_t pc)
{
    place *p = get_place(&s->places, pc);
    if (p->code_size) return p;
    p->code_size = (uint8_t)read_code(s->pid, pc, p->code);
    p->kind = step_flow(p->code, p->code_size, &p->length);
    return p;
}

static void before_step(stepper *s, const struct user_regs_struct *regs, step *t)
{
    const place *p = known_place(s, step_pc(regs));
    t->pc = p->pc;
    t->kind = p->kind;
    t->length = p->length;
    t->changes_mappings = step_changes_mappings(p->code, p->code_size, regs);
    t->n = step_accesses(s->pid, regs, p->code, p->code_size, t->list, &t->is_rep);
    s->knows_accesses = t->n >= 0;
}

/* The instruction has been executed, and control went to `now`. */
static void note_flow(stepper *s, const step *t, place *p, uint64_t now)
{
    if (s->begins) {
        p->begun++;
        s->blocks++;
    }
    s->begins = t->kind != STEP_PLAIN;
    if (t->kind == STEP_CONDITIONAL && now != t->pc + t->length) p->taken++;
    if (t->kind == STEP_INDIRECT && !step_edges_add(&s->edges, t->pc, now)) die("memory");
}

/* The step ended at `now`: the instruction is finished unless REP stays where it is. */
static void after_step(stepper *s, const step *t, uint64_t now)
{
    if (s->rep_pc != t->pc) {
        for (int i = 0; i < t->n; i++) note_access(s, t->pc, &t->list[i]);
    }
    if (t->is_rep && now == t->pc) {
        s->rep_pc = t->pc;
        return;
    }
    s->rep_pc = 0;
    s->instructions++;
    place *p = get_place(&s->places, t->pc);
    p->count++;
    note_flow(s, t, p, now);
    if (t->changes_mappings) forget_code(&s->places);
}

/* These have been executed in one go, and control went to `now`. */
static void after_together(stepper *s, const step_run *r, uint64_t now)
{
    for (int i = 0; i < r->n; i++) {
        const place *p = known_place(s, r->at[i]);
        step t = {.pc = p->pc, .kind = p->kind, .length = p->length};
        after_step(s, &t, i + 1 < r->n ? r->at[i + 1] : now);
    }
}

/* Was the stop after a resumption with a signal the entry into its handler? Then no instruction has
 * run: the kernel reports the handler's frame with si_code SIGTRAP, a step with TRAP_TRACE. */
static bool entered_handler(pid_t pid)
{
    siginfo_t si;
    return ptrace(PTRACE_GETSIGINFO, pid, NULL, &si) == 0 && si.si_code == SIGTRAP;
}

static void read_registers(pid_t pid, struct user_regs_struct *regs)
{
    struct iovec all = {regs, sizeof *regs};
    if (ptrace(PTRACE_GETREGSET, pid, (void *)NT_PRSTATUS, &all) != 0) die("registers");
}

/* A step, which may deliver a signal, or a few in one go. */
static step_way advance(stepper *s, const struct user_regs_struct *regs, int deliver, step *t, step_run *r)
{
    step_way way = deliver ? STEP_ALONE : step_together(s->pid, step_pc(regs), r);
    if (way == STEP_UNKNOWN) {
        fprintf(stderr, "stepper: %" PRIx64 ": an exclusive sequence that has no clear way through\n", step_pc(regs));
        exit(1);
    }
    if (way == STEP_RUN) return way;
    before_step(s, regs, t);
    const place *p = known_place(s, t->pc);
    if (!deliver && step_instead(s->pid, regs, p->code, p->code_size)) {
        r->status = SIGTRAP << 8 | 0x7f; /* as if it had stopped behind it */
        return way;
    }
    if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, (long)deliver) != 0) die("step");
    if (waitpid(s->pid, &r->status, 0) != s->pid) die("wait");
    return way;
}

static int run(stepper *s)
{
    int deliver = 0;
    struct user_regs_struct regs;
    read_registers(s->pid, &regs);
    for (;;) {
        step t;
        step_run together;
        bool alone = advance(s, &regs, deliver, &t, &together) == STEP_ALONE;
        int status = together.status;

        if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) {
            /* The instruction was a system call that ends the process, or it was killed. */
            if (!alone) after_together(s, &together, 0);
            else if (!deliver) after_step(s, &t, 0);
            read_maps(s);
            ptrace(PTRACE_CONT, s->pid, NULL, 0L);
            if (waitpid(s->pid, &status, 0) != s->pid) die("wait");
        }
        if (WIFEXITED(status)) return WEXITSTATUS(status);
        if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);

        bool ran = status >> 8 == SIGTRAP && !(deliver && entered_handler(s->pid));
        deliver = WSTOPSIG(status) == SIGTRAP ? 0 : WSTOPSIG(status);
        read_registers(s->pid, &regs);
        if (!alone) after_together(s, &together, step_pc(&regs));
        else if (ran && !(s->told_twice && step_pc(&regs) == t.pc)) after_step(s, &t, step_pc(&regs));
        bool entered = status >> 8 == SIGTRAP && !ran;
        s->begins |= entered;
        s->told_twice = step_told_twice && alone && (entered || (ran && !s->told_twice && t.kind == STEP_OTHER));
    }
}

static void stay_on_this_processor(void)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_setaffinity(0, sizeof one, &one);
}

static void start(stepper *s, char **argv)
{
    s->pid = fork();
    if (s->pid < 0) die("fork");
    if (s->pid == 0) {
        personality(ADDR_NO_RANDOMIZE);
        ptrace(PTRACE_TRACEME, 0, NULL, NULL);
        execvp(argv[0], argv);
        fprintf(stderr, "stepper: %s: %s\n", argv[0], strerror(errno));
        _exit(127);
    }
    int status;
    if (waitpid(s->pid, &status, 0) != s->pid) die("wait");
    if (!WIFSTOPPED(status)) exit(1);
    ptrace(PTRACE_SETOPTIONS, s->pid, NULL, (long)(PTRACE_O_TRACEEXIT | PTRACE_O_EXITKILL));
}

static int by_pc(const void *a, const void *b)
{
    uint64_t x = ((const place *)a)->pc, y = ((const place *)b)->pc;
    return x < y ? -1 : x > y;
}

static void report_flow(stepper *s, size_t n, FILE *out)
{
    fprintf(out, "blocks %" PRIu64 "\n", s->blocks);
    for (size_t i = 0; i < n; i++) {
        const place *p = &s->places.at[i];
        const char *name = step_mnemonic(p->code, sizeof p->code);
        if (name) fprintf(out, "mnemonic %s %" PRIu64 "\n", name, p->count);
        if (p->begun) fprintf(out, "block %" PRIx64 " %" PRIu64 "\n", p->pc, p->begun);
        if (p->kind == STEP_CONDITIONAL) fprintf(out, "taken %" PRIx64 " %" PRIu64 "\n", p->pc, p->taken);
    }
    n = step_edges_sort(&s->edges);
    for (size_t i = 0; i < n; i++) {
        const step_edge *e = &s->edges.at[i];
        fprintf(out, "edge %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", e->from, e->to, e->count);
    }
}

static void report(stepper *s, int status, FILE *out)
{
    fprintf(out, "instructions %" PRIu64 "\n", s->instructions);
    if (s->knows_accesses) fprintf(out, "accesses %" PRIu64 " %016" PRIx64 "\n", s->accesses, s->hash);
    fprintf(out, "status %d\n", status);
    if (s->maps) fputs(s->maps, out);
    size_t n = 0;
    for (size_t i = 0; i < s->places.size; i++) {
        if (s->places.at[i].count) s->places.at[n++] = s->places.at[i];
    }
    qsort(s->places.at, n, sizeof *s->places.at, by_pc);
    for (size_t i = 0; i < n; i++)
        fprintf(out, "pc %" PRIx64 " %" PRIu64 "\n", s->places.at[i].pc, s->places.at[i].count);
    report_flow(s, n, out);
}

int main(int argc, char **argv)
{
    stepper s = {.hash = 0xcbf29ce484222325u, .begins = true};
    FILE *out = stderr;
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--") == 0) {
            i++;
            break;
        }
        if (i + 1 < argc && strcmp(argv[i], "--accesses") == 0) {
            if (!(s.access_file = fopen(argv[++i], "we"))) die(argv[i]);
        } else if (i + 1 < argc && strcmp(argv[i], "-o") == 0) {
            if (!(out = fopen(argv[++i], "we"))) die(argv[i]);
        } else {
            break;
        }
    }
    if (i >= argc) {
        fprintf(stderr, "usage: stepper [-o FILE] [--accesses FILE] [--] PROGRAM [ARGS]\n");
        return 2;
    }
    stay_on_this_processor();
    start(&s, argv + i);
    int status = run(&s);
    report(&s, status, out);
    if (s.access_file && !s.knows_accesses) {
        fprintf(stderr, "stepper: which memory instructions access is not known for this architecture\n");
        status = 2;
    }
    if (s.access_file) fclose(s.access_file);
    fclose(out);
    return status;
}
