/* A tool's state is taken down and set up again in one process, and two of them live side by side. In a program linked
 * as a tool is. */
#include "tool/options.h"
#include "base/log.h"
#include "cfg/program.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                                    \
    do {                                                                                                               \
        if (!(what)) {                                                                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #what);                                                 \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static const uint64_t BIAS = 0x10000000;

static void on_image(inlay_image *i, void *arg)
{
    (void)i;
    (void)arg;
}

static void on_full(const void *records, size_t count, unsigned thread, void *arg)
{
    (void)records;
    (void)count;
    (void)thread;
    (void)arg;
}

static module *open_self(void)
{
    image *im;
    inl_error e = {0};
    CHECK(image_open("/proc/self/exe", &im, &e) == INL_OK);
    run_here.modules = module_set_new();
    module *m = module_set_add(run_here.modules, im, BIAS, true);
    CHECK(m);
    return m;
}

static void close_self(void)
{
    module_set_free(run_here.modules);
    run_here.modules = NULL;
}

/* What a tool does in its main and in a callback of an image, as far as that needs no engine. */
static void use(inlay_counter *counter)
{
    char *argv[] = {"tool", "--number=7", "--format=json", "--image=exe", "--proc=use", "--", "program", NULL};
    uint64_t number = 0;
    *counter = (inlay_counter){0};
    inlay_option_uint(&number, "number", 'n', "a number");
    CHECK(options_parse(7, argv, "a tool") == 6);
    CHECK(number == 7);
    CHECK(inlay_format_is_json());

    inlay_on_image_load(on_image, NULL);
    CHECK(tool_client_sees_code());
    inlay_buffer *b = inlay_buffer_new(8, 16, on_full, NULL);
    CHECK(b->woven.slot == 0);
    uint64_t *record = inlay_record(0x1234, sizeof *record);
    CHECK(record);
    CHECK(*record == 0);
    *record = 1;
    char *large = inlay_alloc(1 << 20);
    CHECK(large);
    large[0] = 1;
    CHECK(inlay_count(counter, 1));
    CHECK(counter->index == 1);
}

/* What is removed is nowhere: a writer of programs leaves the procedure alone. */
static void check_removal(inlay_image *i, inlay_proc *p, inlay_insertion *at_block, inlay_insertion *at_exit)
{
    const cfg_program *cfg = tool_code_take(i);
    uint32_t k = cfg_proc_covering(cfg, p->low - i->bias);
    CHECK(tool_code_touched(i, k) && p->exit && !p->entry);
    tool_now->said = 1000; /* refusals are not shown */
    CHECK(inlay_remove(at_block) && !inlay_remove(at_block));
    CHECK(inlay_remove(at_exit) && !inlay_remove(at_exit));
    CHECK(!tool_code_touched(i, k) && !p->exit);
    CHECK(!inlay_remove(NULL));
}

/* A handle of this program's own code, with something inserted. */
static void instrument(module *m, inlay_counter *counter)
{
    inlay_image *i = tool_image_of(m);
    CHECK(i == inlay_image_first());
    CHECK(i->process == tool_now->process);
    CHECK(inlay_image_wanted(i));
    inlay_proc *p = inlay_image_proc_named(i, "use");
    CHECK(p);
    CHECK(inlay_proc_wanted(p));
    CHECK(inlay_proc_id(p) == 0);
    CHECK(inlay_proc_at(inlay_proc_address(p)) == p);
    uint64_t *record = inlay_proc_record(p, sizeof *record);
    CHECK(*record == 0);
    *record = 1;
    inlay_block *b = inlay_proc_block_first(p);
    CHECK(b);
    inlay_insertion *at_block = inlay_insert(inlay_block_entry(b), inlay_count(counter, 1));
    inlay_insertion *at_exit = inlay_insert(inlay_proc_exit(p), inlay_count(counter, 1));
    CHECK(at_block && at_exit);
    check_removal(i, p, at_block, at_exit);
    CHECK(inlay_insert(inlay_block_entry(b), inlay_count(counter, 1)));
    CHECK(inlay_insert(inlay_proc_exit(p), inlay_count(counter, 1)));
    CHECK(tool_now->process->code_inserted);
    CHECK(tool_now->process->proc_points);
}

/* Does the walk of --debug notice what is wrong? In a child, which it ends. */
static bool is_noticed(void (*spoil)(inlay_image *), inlay_image *i)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        inl_log_fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
        spoil(i);
        tool_check();
        _exit(0);
    }
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void spoil_nothing(inlay_image *i) { (void)i; }
static void spoil_index(inlay_image *i) { inlay_image_proc_named(i, "use")->index++; }
static void spoil_order(inlay_image *i) { inlay_image_proc_named(i, "use")->low = i->low - 1; }

static void spoil_list(inlay_image *i)
{
    inlay_insn *first = inlay_block_first(inlay_proc_block_first(inlay_image_proc_named(i, "use")));
    ((weave_insn *)first)->before.last = NULL;
}

static void check_checks(inlay_image *i)
{
    tool_check();
    CHECK(!is_noticed(spoil_nothing, i));
    CHECK(is_noticed(spoil_index, i) && is_noticed(spoil_order, i) && is_noticed(spoil_list, i));
}

static void check_beginning(const tool_state *s)
{
    for (int k = 0; k < ON_KINDS; k++) CHECK(!s->callbacks[k]);
    CHECK(s->next_counter == WEAVE_BANKED && s->next_banked == 1);
    CHECK(s->buffers.count == 0);
    CHECK(s->records.by_key.count == 0);
    CHECK(s->options.images.count == 0);
    CHECK(s->options.fds.err == -1);
    CHECK(s->command_line.own.count == 0);
    CHECK(!s->memory.large);
    CHECK(!s->own.last_found);
    CHECK(!s->own.code_inserted);
    CHECK(!s->own.proc_points);
    CHECK(!s->options.json);
}

/* Freed blocks of one size are handed out again, so after each of many equal rounds the first one is one of a few;
 * where something was kept, ever new ones come. */
enum { SIZES = 96, MOST_ROUNDS = 100 };
static void *seen[MOST_ROUNDS][SIZES];

/* One of each of the allocator's classes (tool/heap.c). */
static size_t bytes_of(unsigned k) { return k < 64 ? 16 * k + 8 : ((5ul + (k - 64) % 4) * 256 << (k - 64) / 4) - 16; }

static bool was_seen(const void *block, int size, int rounds)
{
    for (int r = 0; r < rounds; r++)
        if (seen[r][size] == block) return true;
    return false;
}

static void probe(int round, int rounds)
{
    for (int k = 0; k < SIZES; k++) {
        void *block = malloc(bytes_of((unsigned)k));
        CHECK(round < rounds / 2 || was_seen(block, k, round));
        seen[round][k] = block;
        free(block);
    }
}

/* With and without a view of code. */
static void take_down_and_up(module *m, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        inlay_counter counter;
        use(&counter);
        if (m) instrument(m, &counter);
        if (m && round == 0) check_checks(m->user);
        tool_state_end(tool_now);
        CHECK(!m || !m->user);
        check_beginning(tool_now);
        probe(round, rounds);
    }
}

static void live_side_by_side(void)
{
    tool_state *one = tool_now, other;
    inlay_counter a, b;
    tool_state_begin(&other);
    use(&a);
    tool_now = &other;
    check_beginning(tool_now);
    use(&b);
    *(uint64_t *)inlay_record(0x1234, 8) = 2;
    tool_now = one;
    CHECK(*(uint64_t *)inlay_record(0x1234, 8) == 1);
    tool_state_end(one);
    CHECK(a.index == b.index);
    tool_now = &other;
    CHECK(*(uint64_t *)inlay_record(0x1234, 8) == 2);
    tool_state_end(&other);
    tool_now = one;
}

int main(void)
{
    module *m = open_self();
    take_down_and_up(m, 24);
    take_down_and_up(NULL, MOST_ROUNDS);
    close_self();
    live_side_by_side();
    puts("the tool's state: good");
    return 0;
}
