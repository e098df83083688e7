/* A plan whose target is a process that runs: a copy of this one, which works away while its parent stops it, lets
 * procedures of it come and go, and lets it go on. What the child works out never changes; a procedure that is in
 * counts each time it is entered, whichever others are in or out; one that is out does not; and in the end its code is
 * what it was, byte for byte.
 *
 * The target is as small as one can be: one thread, stopped by ptrace; memory near the program, set aside before the
 * fork. What it must look after is where that thread stands: in the middle of bytes that become a jump, or at a
 * springboard that goes. */
#include "base/check.h"
#include "base/map.h"
#include "base/search.h"
#include "elf/elf.h"
#include "isa/x86_64/x86.h"
#include "move/plan.h"

#include <asm/prctl.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROOM = 256 << 20, FREE_ROUNDS = 400, MOST_STEPS = 3000, EXACT_ROUNDS = 150 };

/* Fewer where all would take too long. */
static unsigned rounds(unsigned of)
{
    const char *steps = getenv("MOVE_STEPS");
    unsigned most = steps ? (unsigned)strtoul(steps, NULL, 10) : of;
    return of < most ? of : most;
}

/* --- what the child does --- */

typedef struct shared {
    uint64_t rounds, wrong;
    bool stops; /* itself, behind each round */
} shared;

static const uint8_t *code; /* something to decode: a copy of this program's text */
static size_t code_size;

static int by_value(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint64_t decoded(void)
{
    uint64_t sum = 0;
    isa_insn in;
    isa_effects fx;
    for (size_t at = 0; at < code_size; at += in.len ? in.len : 1) {
        isa_result r = isa_x86_64.decode(code + at, code_size - at, at, &in);
        if (r <= ISA_UNKNOWN) isa_x86_64.effects(&in, &fx), sum = sum * 31 + fx.reads + fx.writes;
        else in.len = 1;
        sum = sum * 31 + in.flow + in.len;
    }
    return sum;
}

static uint64_t sorted_and_mapped(void)
{
    uint32_t numbers[200];
    uint64_t sum = 0, value;
    inl_map map = {0};
    for (unsigned i = 0; i < 200; i++) numbers[i] = i * 2654435761u;
    qsort(numbers, 200, sizeof *numbers, by_value);
    for (unsigned i = 0; i < 200; i++) inl_map_put(&map, numbers[i], i);
    for (unsigned i = 0; i < 200; i += 3) inl_map_remove(&map, numbers[i]);
    for (unsigned i = 0; i < 200; i++) sum = sum * 31 + (inl_map_get(&map, i * 2654435761u, &value) ? value : 7);
    inl_map_free(&map);
    return sum;
}

/* A table of jumps, calls of itself, a tail call. */
static __attribute__((noinline)) uint64_t walk(unsigned depth, uint64_t sum)
{
    if (!depth) return sum;
    switch (sum % 11) {
    case 0: return walk(depth - 1, sum * 3 + 1);
    case 1: return walk(depth - 1, sum ^ 0x5555) + walk(depth / 2, sum);
    case 2: return walk(depth - 1, sum + depth);
    case 3: return walk(depth - 1, sum >> 1) * 5;
    case 4: return walk(depth - 1, ~sum);
    case 5: return walk(depth - 1, sum * sum);
    case 6: return walk(depth - 1, sum - 77) ^ sum;
    case 7: return walk(depth - 1, sum / 3);
    default: return walk(depth - 1, sum + 0x9e3779b97f4a7c15u);
    }
}

/* A procedure of which a part stands elsewhere: only jumps and a jump table of one lead into the other. */
uint64_t move_live_split(uint64_t);
__asm__(".pushsection .text\n"
        ".balign 16\n"
        ".globl move_live_split\n"
        ".type move_live_split,@function\n"
        "move_live_split: .cfi_startproc\n"
        "  mov %rdi,%rax\n"
        "  cmp $3,%rdi\n"
        "  ja move_live_part\n"
        "  lea 1f(%rip),%rdx\n"
        "  movslq (%rdx,%rdi,4),%rcx\n"
        "  add %rdx,%rcx\n"
        "  jmp *%rcx\n"
        "2: lea 0x12345(%rax,%rax,2),%rax\n"
        "3: imul $12345,%rax,%rax\n"
        "  ret\n"
        "  .cfi_endproc\n"
        ".size move_live_split,.-move_live_split\n"
        ".balign 16\n"
        ".type move_live_part,@function\n"
        "move_live_part: .cfi_startproc\n"
        "  xor $0x1234567,%rax\n"
        "  jmp 3b\n"
        "4: add $0x7654321,%rax\n"
        "  jmp 3b\n"
        "  .cfi_endproc\n"
        ".size move_live_part,.-move_live_part\n"
        ".popsection\n"
        ".pushsection .rodata\n"
        ".balign 4\n"
        "1: .long 2b-1b, move_live_part-1b, 4b-1b, 3b-1b\n"
        ".popsection\n");

static __attribute__((noinline)) uint64_t work(void)
{
    uint64_t sum = decoded() + sorted_and_mapped() * 3 + walk(40, 99) * 5;
    for (uint64_t i = 0; i < 9; i++) sum = sum * 31 + move_live_split(i % 6);
    return sum;
}

static __attribute__((noinline, noreturn)) void live(shared *s, void *frame, uint64_t expected)
{
    if (syscall(SYS_arch_prctl, ARCH_SET_GS, frame)) _exit(3);
    for (;;) {
        if (s->stops) raise(SIGSTOP);
        if (work() != expected) s->wrong++;
        s->rounds++;
    }
}

/* --- the target --- */

typedef struct process {
    move_target target;
    image *im;
    cfg_program *program;
    move_plan *plan;
    move_applied *applied;
    inl_arena arena;
    uint64_t bias, room;
    pid_t pid;
    int memory; /* of the child */
    shared *shared;
    uint64_t *counters;
    uint32_t *all; /* procedures that have moved */
    size_t count, moved_by, changes;
} process;

static size_t read_bytes(void *arg, link_addr at, const uint8_t **bytes)
{
    return image_bytes(((process *)arg)->im, at.at, bytes);
}

static link_addr room(void *arg)
{
    const process *p = arg;
    return (link_addr){p->room - p->bias};
}

/* The thread may stand anywhere. */
static bool never(void *arg, const cfg_program *program, uint32_t block)
{
    (void)arg, (void)program, (void)block;
    return false;
}

static void replace(process *p, const move_patch *x, bool back)
{
    uint8_t there[MOVE_MOST_PATCH];
    assert_int_equal(pread(p->memory, there, x->size, (off_t)x->at.at), x->size);
    assert_memory_equal(there, back ? x->now : x->before, x->size);
    assert_int_equal(pwrite(p->memory, back ? x->before : x->now, x->size, (off_t)x->at.at), x->size);
    p->changes++;
}

static inl_status place(void *arg, const move_delta *d, inl_error *e)
{
    process *p = arg;
    if (pwrite(p->memory, d->text, d->size, (off_t)d->at.at) == (ssize_t)d->size) return INL_OK;
    return inl_fail(e, INL_ERR_SYSTEM, "cannot write to the child: %s", strerror(errno));
}

static struct user_regs_struct registers(const process *p)
{
    struct user_regs_struct r;
    assert_int_equal(ptrace(PTRACE_GETREGS, p->pid, NULL, &r), 0);
    return r;
}

static void go_on_at(process *p, uint64_t pc)
{
    struct user_regs_struct r = registers(p);
    assert_int_not_equal(pc, 0);
    r.rip = pc;
    assert_int_equal(ptrace(PTRACE_SETREGS, p->pid, NULL, &r), 0);
    p->moved_by++;
}

static inl_status commit(void *arg, const move_delta *d, inl_error *e)
{
    process *p = arg;
    uint64_t pc = registers(p).rip;
    (void)e;
    for (size_t i = 0; i < d->patch_count; i++) {
        const move_patch *x = &d->patches[i];
        if (pc > x->at.at && pc - x->at.at < x->size)
            go_on_at(p, move_new_address(p->plan, (assumed_addr){pc}, false).at);
        replace(p, x, false);
    }
    for (size_t i = 0; i < d->link_count; i++) replace(p, &d->links[i], false);
    return INL_OK;
}

static inl_status take_back(void *arg, const move_delta *d, inl_error *e)
{
    process *p = arg;
    uint64_t pc = registers(p).rip;
    (void)e;
    for (size_t i = 0; i < d->patch_count; i++) {
        const move_patch *x = &d->patches[i];
        isa_insn in;
        assert_int_equal(isa_x86_64.decode(x->now, x->size, x->at.at, &in), ISA_OK);
        if (pc == x->at.at && cfg_block_at(p->program, pc - p->bias) == CFG_NONE) go_on_at(p, in.target);
        replace(p, x, true);
    }
    for (size_t i = 0; i < d->link_count; i++) replace(p, &d->links[i], false);
    return INL_OK;
}

/* --- the plan --- */

static void count_at(process *p, weave_run *run, uint32_t insn, uint32_t counter)
{
    snippet *count = snippet_new(&p->arena, SNIPPET_COUNT), *one = snippet_new(&p->arena, SNIPPET_CONST);
    const char *why;
    assert_true(count && one);
    one->value = 1;
    count->a = one;
    count->index = counter;
    assert_true(weave_insert_at(run, WEAVE_BEFORE, insn, count, false, &why));
}

/* Two counters for each procedure: of its entry, and of all its blocks. */
static void instrument(void *arg, const cfg_program *program, uint32_t proc, weave_run *run)
{
    count_at(arg, run, 0, 2 * proc);
    for (uint32_t k = 0; k < run->block_count; k++) count_at(arg, run, run->blocks[k].first, 2 * proc + 1);
    (void)program;
}

/* This program's bias, and where it ends. */
static int find_self(struct dl_phdr_info *info, size_t size, void *arg)
{
    uint64_t *out = arg;
    (void)size;
    out[0] = info->dlpi_addr;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uint64_t end = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
        if (info->dlpi_phdr[i].p_type == PT_LOAD && end > out[1]) out[1] = end;
    }
    return 1; /* the first is the program */
}

static uint64_t find_room(uint64_t from)
{
    for (uint64_t at = (from | (ROOM - 1)) + 1; at < from + (1u << 30); at += ROOM / 4)
        if (mmap((void *)at, ROOM, PROT_READ | PROT_EXEC,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == (void *)at)
            return at;
    return 0;
}

static void copy_code(const process *p)
{
    const uint8_t *bytes;
    uint32_t proc = cfg_proc_covering(p->program, (uint64_t)(uintptr_t)work - p->bias);
    assert_int_not_equal(proc, CFG_NONE);
    code_size = image_bytes(p->im, p->program->procs[proc].addr, &bytes);
    if (code_size > 20000) code_size = 20000;
    uint8_t *copy = malloc(code_size);
    assert_non_null(copy);
    memcpy(copy, bytes, code_size);
    code = copy;
}

static void make_plan(process *p)
{
    uint64_t self[2] = {0};
    inl_error e = {0};
    move_client client = {.arg = p, .instrument = instrument};
    p->target = (move_target){.arg = p,
                              .read = read_bytes,
                              .room = room,
                              .may_overwrite = never,
                              .one_by_one = true,
                              .place = place,
                              .commit = commit,
                              .take_back = take_back};
    inl_debug = true;
    dl_iterate_phdr(find_self, self);
    p->bias = self[0];
    p->room = find_room(self[1]);
    assert_int_not_equal(p->room, 0);
    if (image_open("/proc/self/exe", &p->im, &e) || cfg_program_analyse(p->im, NULL, &p->program, &e) ||
        move_plan_make(p->program, p->bias, &p->target, &client, &p->plan, &e) || move_plan_check(p->plan, &e))
        fail_msg("%s", e.text);
    assert_true(p->plan->text_size < ROOM);
    p->all = calloc(p->program->proc_count, sizeof *p->all);
    assert_non_null(p->all);
    for (uint32_t i = 0; i < p->program->proc_count; i++)
        if (p->plan->procs[i].new_addr) p->all[p->count++] = i;
    assert_true(p->count * 2 > p->program->proc_count);
}

static void *share(size_t size)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(p != MAP_FAILED);
    return p;
}

static void stopped(const process *p)
{
    int status;
    assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
    if (!WIFSTOPPED(status) || (WSTOPSIG(status) != SIGSTOP && WSTOPSIG(status) != SIGTRAP))
        fail_msg("the child came to an end, or a signal: %#x", status);
}

static void begin(process *p)
{
    char path[64];
    inl_error e = {0};
    *p = (process){0};
    make_plan(p);
    copy_code(p);
    uint8_t *frame = share(WEAVE_COUNTERS + 16 * p->program->proc_count);
    p->counters = (uint64_t *)(frame + WEAVE_COUNTERS);
    p->shared = share(sizeof *p->shared);
    p->shared->stops = true;
    work();
    uint64_t expected = work();
    assert_int_equal(expected, work());
    p->pid = fork();
    assert_true(p->pid >= 0);
    if (p->pid == 0) live(p->shared, frame, expected);
    if (ptrace(PTRACE_SEIZE, p->pid, NULL, PTRACE_O_EXITKILL)) fail_msg("PTRACE_SEIZE: %s", strerror(errno));
    stopped(p);
    snprintf(path, sizeof path, "/proc/%d/mem", (int)p->pid);
    p->memory = open(path, O_RDWR | O_CLOEXEC);
    assert_true(p->memory >= 0);
    assert_int_equal(move_applied_begin(p->plan, &p->target, &p->applied, &e), INL_OK);
}

/* The old code is what it was. */
static void check_code(const process *p)
{
    const cfg_program *program = p->program;
    for (uint32_t i = 0; i < program->proc_count; i++) {
        const cfg_proc *of = &program->procs[i];
        const uint8_t *bytes;
        size_t size = of->size + of->padding;
        uint8_t *there = malloc(size);
        assert_non_null(there);
        assert_true(image_bytes(p->im, of->addr, &bytes) >= size);
        assert_int_equal(pread(p->memory, there, size, (off_t)(of->addr + p->bias)), size);
        assert_memory_equal(there, bytes, size);
        free(there);
    }
}

static void end(process *p)
{
    kill(p->pid, SIGKILL);
    waitpid(p->pid, NULL, 0);
    close(p->memory);
    move_applied_end(p->applied);
    move_plan_free(p->plan);
    cfg_program_free(p->program);
    image_close(p->im);
    inl_arena_free(&p->arena);
    munmap((void *)p->room, ROOM);
    free(p->all);
    free((void *)code);
}

static void go_on(const process *p) { assert_int_equal(ptrace(PTRACE_CONT, p->pid, NULL, NULL), 0); }

static uint32_t random_number(uint32_t below)
{
    static uint64_t seed = 88172645463325252;
    seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17;
    return (uint32_t)((seed >> 16) % below);
}

/* Some come or go, or all. */
static void change_some(process *p)
{
    uint32_t some[64];
    inl_error e = {0};
    size_t n = 1 + random_number(64);
    for (size_t i = 0; i < n; i++) some[i] = p->all[random_number((uint32_t)p->count)];
    bool in = random_number(2), all = !random_number(8);
    const uint32_t *procs = all ? p->all : some;
    if (all) n = p->count;
    if (in ? move_apply(p->applied, procs, n, &e) : move_take_back(p->applied, procs, n, &e)) fail_msg("%s", e.text);
}

static void all_back(process *p)
{
    inl_error e = {0};
    assert_int_equal(move_take_back(p->applied, p->all, p->count, &e), INL_OK);
    check_code(p);
}

/* --- the tests --- */

static uint32_t proc_named(const process *p, const char *name)
{
    for (uint32_t i = 0; i < p->program->proc_count; i++)
        if (p->program->procs[i].name && !strcmp(p->program->procs[i].name, name)) return i;
    fail_msg("there is no %s", name);
    return 0;
}

/* From one round's end to the next, with nobody in the middle of anything. */
static uint64_t *counts_of_round(process *p)
{
    size_t size = 2 * p->program->proc_count * sizeof *p->counters;
    uint64_t *before = malloc(size), *of = malloc(size);
    assert_true(before && of);
    memcpy(before, p->counters, size);
    go_on(p);
    stopped(p);
    for (uint32_t i = 0; i < 2 * p->program->proc_count; i++) of[i] = p->counters[i] - before[i];
    free(before);
    return of;
}

/* The procedure that goes round and round is in the middle of its old code when it comes, or of its new when it goes.
 */
static void check_round(const process *p, const uint64_t *now, const uint64_t *expected)
{
    uint32_t loop = cfg_proc_covering(p->program, (uint64_t)(uintptr_t)live - p->bias);
    for (uint32_t i = 0; i < 2 * p->program->proc_count; i++) {
        uint64_t want = move_is_applied(p->applied, i / 2) ? expected[i] : 0;
        if (now[i] != want && i != 2 * loop + 1)
            fail_msg("%s: %s are %lu, not %lu", p->program->procs[i / 2].name, i % 2 ? "blocks" : "entries", now[i],
                     want);
    }
}

static void counts_are_exact(void **state)
{
    (void)state;
    process p;
    inl_error e = {0};
    begin(&p);
    free(counts_of_round(&p));
    assert_int_equal(move_apply(p.applied, p.all, p.count, &e), INL_OK);
    free(counts_of_round(&p));
    uint64_t *expected = counts_of_round(&p), total = 0, used = 0;
    for (uint32_t i = 0; i < 2 * p.program->proc_count; i += 2) total += expected[i], used += expected[i] != 0;
    assert_true(used > 10 && total > 5000);
    assert_int_equal(expected[2 * proc_named(&p, "move_live_split")], 9);
    assert_int_equal(expected[2 * proc_named(&p, "move_live_part")], 4); /* its entry: not what is behind */
    for (unsigned round = 0; round < rounds(EXACT_ROUNDS); round++) {
        change_some(&p);
        uint64_t *now = counts_of_round(&p);
        check_round(&p, now, expected);
        free(now);
    }
    assert_int_equal(p.shared->wrong, 0);
    all_back(&p);
    free(expected);
    end(&p);
}

/* The patch that cannot come or go without the thread: it stands in the middle of bytes that would become a jump, or at
 * a springboard. NULL: none. */
static const move_patch *in_the_way(const process *p)
{
    uint64_t pc = registers(p).rip;
    size_t behind = INL_FIRST(p->plan->patch_count, k, p->plan->patches[k].at.at > pc);
    const move_patch *x = behind ? &p->plan->patches[behind - 1] : NULL;
    if (!x || pc - x->at.at >= x->size) return NULL;
    if (pc > x->at.at) return x;
    return cfg_block_at(p->program, pc - p->bias) == CFG_NONE ? x : NULL;
}

/* Steps on until it stands in the way of something, which then comes or goes. */
static void change_underfoot(process *p)
{
    const move_patch *x = in_the_way(p);
    inl_error e = {0};
    for (unsigned i = 0; !x && i < MOST_STEPS; i++) {
        assert_int_equal(ptrace(PTRACE_SINGLESTEP, p->pid, NULL, NULL), 0);
        stopped(p);
        x = in_the_way(p);
    }
    if (!x) return;
    size_t before = p->moved_by;
    bool in = !move_is_applied(p->applied, x->proc);
    if (in ? move_apply(p->applied, &x->proc, 1, &e) : move_take_back(p->applied, &x->proc, 1, &e))
        fail_msg("%s", e.text);
    assert_int_equal(p->moved_by, before + 1);
}

/* Stopped anywhere. */
static void while_it_runs(void **state)
{
    (void)state;
    process p;
    size_t in_new = 0;
    begin(&p);
    p.shared->stops = false;
    for (unsigned i = 0; i < rounds(FREE_ROUNDS); i++) {
        go_on(&p);
        usleep(random_number(1000));
        assert_int_equal(ptrace(PTRACE_INTERRUPT, p.pid, NULL, NULL), 0);
        stopped(&p);
        in_new += registers(&p).rip - p.room < ROOM;
        if (i % 4 == 0) change_underfoot(&p);
        change_some(&p);
        assert_int_equal(p.shared->wrong, 0);
    }
    all_back(&p);
    p.shared->stops = true;
    uint64_t before = p.shared->rounds;
    go_on(&p);
    stopped(&p);
    go_on(&p);
    stopped(&p);
    assert_true(p.shared->rounds > before);
    assert_int_equal(p.shared->wrong, 0);
    assert_true(p.moved_by > 5);
    print_message("%lu rounds, %zu changes, stopped in new code %zu times, sent elsewhere %zu times\n",
                  p.shared->rounds, p.changes, in_new, p.moved_by);
    end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_are_exact),
        cmocka_unit_test(while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
