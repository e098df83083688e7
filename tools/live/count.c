/* count: how often procedures of a process are called, from now on.
 *
 *     inlay count -p PID malloc 'SSL_*'
 *
 * A word of memory for each, which an instruction at its entry adds to in one piece: exact with any number of threads.
 * At the end the instructions are taken out again. */
#define _GNU_SOURCE
#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: inlay count [OPTIONS] -p PID PROC...\n"
    "       inlay count [OPTIONS] PROC... -- PROGRAM [ARGS]\n"
    "\n"
    "Counts the calls of procedures in a process that runs, until Ctrl-C, or its end, or for "
    "--for SECONDS; then nothing\n"
    "of it is left there. PROC is a name, a pattern ('SSL_*') or a regular expression "
    "('/^SSL_.*read/'), in all images or, IMAGE:PROC, "
    "in one ('libc.so.6:mem*').\n"
    "\n"
    "  -p PID                the process\n"
    "  --children            what processes do that it forks from now on counts, too, and programs\n"
    "                        that it and they execute, from their first instruction\n"
    "  --thread TID          what this thread of it does, alone\n"
    "  --for SECONDS         so long\n"
    "  -o FILE               the result goes there instead of standard output\n"
    "  --format=text|json    how it is written: a JSON object, on one line\n";

typedef struct row { /* of one process */
    inlay_process *process;
    inlay_proc *proc;
    const char *why; /* it is not counted; NULL: it is */
    uint64_t *calls; /* the process has it too, and it stays when that has ended, until its handle goes */
} row;
typedef struct total { /* of a procedure in all processes that are followed */
    char *name, *shown, *image, *path;
    const char *why; /* it is not counted */
    uint64_t calls;
} total;

static row *rows;
static total *totals;
static unsigned row_count, total_count;
static bool wants_stubs; /* they have been named */
static const char *program;
static int pid;
static void begins(void);
static void is_in(void);
static void ended(inlay_process *);
static live_command command = {
    .name = "count", .usage = usage, .least = 1, .by_thread = true, .begins = begins, .is_in = is_in, .ended = ended};

/* Room for one more in a list of `count`. */
static void *grown(void *list, unsigned count, size_t size)
{
    void *more = count & (count - 1) ? list : realloc(list, (count ? count * 2 : 1) * size);
    if (!more) exit(LIVE_FAILED);
    return more;
}

/* Names of one procedure are many, and patterns may meet it again. */
static bool is_there(const inlay_proc *p)
{
    for (unsigned k = 0; k < row_count; k++)
        if (rows[k].proc == p && rows[k].process == command.process) return true;
    return false;
}

/* An import stub, which a pattern has met; the procedure that it leads to is counted. */
static bool is_stub(const inlay_proc *p) { return strstr(inlay_proc_name(p), "@plt") && !wants_stubs; }

static void count_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    if (is_there(p) || is_stub(p)) return;
    rows = grown(rows, row_count, sizeof *rows);
    row r = {.process = command.process, .proc = p, .calls = inlay_process_share(command.process, sizeof *r.calls)};
    if (!r.calls) command_fail(&command, "cannot count");
    inlay_expr add = inlay_atomic_add(inlay_pointer(r.calls), inlay_const(1), 8);
    if (!command_insert(&command, inlay_proc_entry(p), command_for_thread(&command, add)))
        r.why = "nothing can be inserted there";
    rows[row_count++] = r;
}

static void begins(void)
{
    static bool is_later;
    for (int k = 0; k < command.word_count; k++)
        if (!command_each_proc(&command, command.words[k], count_proc, NULL) && !is_later)
            command_say(&command, "there is no procedure %s%s", command.words[k],
                        command_nearly(&command, command.words[k]));
    is_later = true;
}

/* Asked now: when all has been taken out again, nothing is refused any more. */
static void is_in(void)
{
    for (row *r = rows; r < rows + row_count; r++)
        if (r->process == command.process && !r->why) r->why = inlay_proc_refused(r->proc);
}

static char *copy(const char *text)
{
    char *c = strdup(text);
    if (!c) exit(LIVE_FAILED);
    return c;
}

/* What chooses a procedure is not called by the name. */
static char *shown_name(const inlay_proc *p)
{
    char *text;
    const char *mark = inlay_proc_is_resolver(p) ? " (resolver)" : "";
    if (asprintf(&text, "%s%s", inlay_proc_display_name(p), mark) < 0) exit(LIVE_FAILED);
    return text;
}

static total *total_of(const inlay_proc *p)
{
    const inlay_image *i = inlay_proc_image(p);
    for (unsigned k = 0; k < total_count; k++)
        if (!strcmp(totals[k].name, inlay_proc_name(p)) && !strcmp(totals[k].path, inlay_image_path(i)) &&
            command.children)
            return &totals[k];
    totals = grown(totals, total_count, sizeof *totals);
    totals[total_count] = (total){.name = copy(inlay_proc_name(p)),
                                  .shown = shown_name(p),
                                  .image = copy(inlay_image_name(i)),
                                  .path = copy(inlay_image_path(i)),
                                  .why = ""};
    return &totals[total_count++];
}

/* It counts no more. */
static void ended(inlay_process *p)
{
    unsigned left = 0;
    for (unsigned k = 0; k < row_count; k++) {
        const row *r = &rows[k];
        if (r->process != p) {
            rows[left++] = *r;
            continue;
        }
        total *t = total_of(r->proc);
        t->calls += *r->calls;
        if (t->why) t->why = r->why;
    }
    row_count = left;
}

static int by_calls(const void *a, const void *b)
{
    const total *x = a, *y = b;
    if (x->calls != y->calls) return x->calls < y->calls ? 1 : -1;
    return strcmp(x->name, y->name);
}

static void report_text(void)
{
    printf("%14s  procedure\n", "calls");
    for (const total *t = totals; t < totals + total_count; t++)
        if (t->why) printf("%14s  %s (%s): %s\n", "-", t->shown, t->image, t->why);
        else printf("%14" PRIu64 "  %s (%s)\n", t->calls, t->shown, t->image);
}

static void report_json(void)
{
    inlay_json_begin(NULL, '{');
    inlay_json_string("command", "count");
    inlay_json_string("program", program);
    inlay_json_uint("pid", (uint64_t)pid);
    inlay_json_begin("procedures", '[');
    for (const total *t = totals; t < totals + total_count; t++) {
        inlay_json_begin(NULL, '{');
        inlay_json_string("name", t->name);
        inlay_json_string("image", t->path);
        if (t->why) inlay_json_string("refused", t->why);
        else inlay_json_uint("calls", t->calls);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

int main(int argc, char **argv)
{
    unsigned counted = 0;
    inlay_mutator(&argc, &argv);
    command_begin(&command, argc, argv);
    for (int k = 0; k < command.word_count; k++) wants_stubs |= strchr(command.words[k], '@') != NULL;
    program = copy(inlay_process_program(command.process)); /* as it is now: it may become another one */
    pid = inlay_process_pid(command.process);
    begins();
    if (!row_count && !command.children) return command_end(&command, LIVE_FAILED);
    command_commit(&command);
    for (unsigned k = 0; k < row_count; k++) counted += !rows[k].why;
    command_say(&command, "%u procedures of process %d are counted", counted, inlay_process_pid(command.process));
    command_wait(&command, NULL, NULL);
    command_remove(&command);
    while (row_count) ended(rows[0].process);
    for (unsigned k = 0; k < total_count; k++) counted += !totals[k].why;
    if (total_count) qsort(totals, total_count, sizeof *totals, by_calls);
    if (command.json) report_json();
    else report_text();
    return command_end(&command, counted ? LIVE_OK : LIVE_FAILED);
}
