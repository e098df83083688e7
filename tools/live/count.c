/* count: how often procedures of a process are called, from now on.
 *
 *     inlay count -p PID malloc 'SSL_*'
 *
 * A word of memory for each, which an instruction at its entry adds to in one piece: exact with any number of threads.
 * At the end the instructions are taken out again. */
#include "command.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "usage: inlay count [OPTIONS] -p PID PROC...\n"
                            "       inlay count [OPTIONS] PROC... -- PROGRAM [ARGS]\n"
                            "\n"
                            "Counts the calls of procedures in a process that runs, until Ctrl-C, or its end, or for "
                            "--for SECONDS; then nothing\n"
                            "of it is left there. PROC is a name, a pattern ('SSL_*') or a regular expression "
                            "('/^SSL_.*read/'), in all images or, IMAGE:PROC, "
                            "in one ('libc.so.6:mem*').\n"
                            "\n"
                            "  -p PID                the process\n"
                            "  --children            what processes do that it forks from now on counts, too\n"
                            "  --thread TID          what this thread of it does, alone\n"
                            "  --for SECONDS         so long\n"
                            "  -o FILE               the result goes there instead of standard output\n"
                            "  --format=text|json    how it is written\n";

typedef struct row {
    inlay_proc *proc;
    bool is_in;
    const char *why; /* it is not counted */
    uint64_t *calls; /* the process has it too, and it stays when that has ended */
} row;

static row *rows;
static unsigned row_count;
static bool wants_stubs; /* they have been named */
static live_command command = {.name = "count", .usage = usage, .least = 1, .by_thread = true};

/* Names of one procedure are many, and patterns may meet it again. */
static bool is_there(const inlay_proc *p)
{
    for (unsigned k = 0; k < row_count; k++)
        if (rows[k].proc == p) return true;
    return false;
}

/* An import stub, which a pattern has met; the procedure that it leads to is counted. */
static bool is_stub(const inlay_proc *p) { return strstr(inlay_proc_name(p), "@plt") && !wants_stubs; }

static void count_proc(inlay_proc *p, void *arg)
{
    (void)arg;
    if (is_there(p) || is_stub(p)) return;
    row *more = row_count & (row_count - 1) ? rows : realloc(rows, (row_count ? row_count * 2 : 1) * sizeof *rows);
    if (!more) exit(LIVE_FAILED);
    rows = more;
    row r = {.proc = p, .calls = inlay_process_share(command.process, sizeof *r.calls)};
    if (!r.calls) command_fail(&command, "cannot count");
    r.is_in = command_insert(&command, inlay_proc_entry(p),
                             command_for_thread(&command, inlay_atomic_add(inlay_pointer(r.calls), inlay_const(1), 8)));
    rows[row_count++] = r;
}

static int by_calls(const void *a, const void *b)
{
    const row *x = a, *y = b;
    if (*x->calls != *y->calls) return *x->calls < *y->calls ? 1 : -1;
    return inlay_proc_id(x->proc) < inlay_proc_id(y->proc) ? -1 : 1;
}

static const char *why_not(const row *r)
{
    return r->is_in ? inlay_proc_refused(r->proc) : "nothing can be inserted there";
}

static void report_text(void)
{
    printf("%14s  procedure\n", "calls");
    for (unsigned k = 0; k < row_count; k++) {
        const char *why = rows[k].why, *image = inlay_image_name(inlay_proc_image(rows[k].proc));
        if (why) printf("%14s  %s (%s): %s\n", "-", inlay_proc_display_name(rows[k].proc), image, why);
        else printf("%14" PRIu64 "  %s (%s)\n", *rows[k].calls, inlay_proc_display_name(rows[k].proc), image);
    }
}

static void report_json(void)
{
    inlay_json_begin(NULL, '{');
    inlay_json_string("command", "count");
    inlay_json_uint("pid", (uint64_t)command.pid);
    inlay_json_begin("procedures", '[');
    for (unsigned k = 0; k < row_count; k++) {
        const char *why = rows[k].why;
        inlay_json_begin(NULL, '{');
        inlay_json_string("name", inlay_proc_name(rows[k].proc));
        inlay_json_string("image", inlay_image_path(inlay_proc_image(rows[k].proc)));
        if (why) inlay_json_string("refused", why);
        else inlay_json_uint("calls", *rows[k].calls);
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
    for (int k = 0; k < command.word_count; k++)
        if (!command_each_proc(&command, command.words[k], count_proc, NULL))
            command_say(&command, "there is no procedure %s", command.words[k]);
    if (!row_count) return command_end(&command, LIVE_FAILED);
    command_commit(&command);
    for (unsigned k = 0; k < row_count; k++) counted += !(rows[k].why = why_not(&rows[k]));
    command_say(&command, "%u procedures of process %d are counted", counted, inlay_process_pid(command.process));
    command_wait(&command, NULL, NULL);
    command_remove(&command);
    qsort(rows, row_count, sizeof *rows, by_calls);
    if (command.json) report_json();
    else report_text();
    return command_end(&command, counted ? LIVE_OK : LIVE_FAILED);
}
