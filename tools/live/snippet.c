/* snippet: code, given as text, at points of a process that runs, for a while.
 *
 *     inlay snippet -p PID write:entry 'static long calls; if ($arg0 == 1) calls++'
 *
 * Points and language are those of the tool of that name (tools/snippet.c). What the code declares static is printed at
 * the end, and the code is taken out again. Lines that it prints come as messages. */
#include "../text_code.h"
#include "command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: inlay snippet [OPTIONS] -p PID POINT CODE\n"
    "       inlay snippet [OPTIONS] POINT CODE -- PROGRAM [ARGS]\n"
    "\n"
    "Runs CODE, a small C, at POINT of a process, until Ctrl-C, or its end, or for --for SECONDS; then variables that "
    "it\n"
    "declares static are printed, and nothing of it is left there. print(VALUE), print_real(NUMBER) and show(STRING)\n"
    "write a line at once (to standard error with --format=json). POINT is one of\n"
    "  NAME, NAME:entry      a procedure's entry; NAME may be a pattern: 'sqlite3_*'\n"
    "  NAME:exit             before each return and each jump to another procedure\n"
    "  NAME:return           before each return, where $ret is the result\n"
    "  NAME:KIND             within it: calls, blocks, loops (their heads), loads, stores, branches, syscalls,\n"
    "                        instructions\n"
    "  FILE:LINE             where a line's code begins (with debug information)\n"
    "  0xADDRESS             an instruction of the program, by its address in the file; IMAGE:0xADDRESS of a library\n"
    "\n"
    "  inlay snippet -p PID write 'static long calls; if ($arg0 == 1) calls++'\n"
    "\n"
    "  -p PID                the process\n"
    "  --children            what processes do that it forks from now on, too: static variables are one for all; and\n"
    "                        in programs that it and they execute, from their first instruction: each has its own\n"
    "  --thread TID          what this thread of it does, alone\n"
    "  --for SECONDS         so long\n"
    "  -o FILE               the result goes there instead of standard output\n"
    "  --format=text|json    how it is written: a JSON object a line, one for each program\n"
    "Without -p the program runs under the JIT, and OPTIONS are those that every tool has.\n";

enum { MOST_BYTES = 256 };
enum { TRIES = 200 }; /* at a message, a millisecond each */
typedef struct line {
    uint64_t unsaid; /* so many before it found no room */
    char text[TEXT_LINE];
} line;
typedef struct row {
    unsigned program;
    const char *where;
    inlay_scope_static v;
    unsigned char value[MOST_BYTES]; /* as it was when it was read last */
} row;
typedef struct program {    /* one that is followed; the first one is what the command was given */
    inlay_process *process; /* NULL: nothing comes of it any more */
    char *name;
    int pid;
    uint64_t places, refused;
} program;

static row *rows;
static program *programs;
static unsigned row_count, program_count;
static uint64_t lost;            /* lines that were lost */
static uint64_t places, refused; /* in the program that is looked at */
static void begins(void);
static void is_in(void);
static void ended(inlay_process *);
static live_command command = {.name = "snippet",
                               .usage = usage,
                               .least = 2,
                               .most = 2,
                               .by_thread = true,
                               .begins = begins,
                               .is_in = is_in,
                               .ended = ended,
                               .kinds = INLAY_EVENTS(MESSAGE)};

/* Room for one more in a list of `count`. */
static void *grown(void *list, unsigned count, size_t size)
{
    void *more = count & (count - 1) ? list : realloc(list, (count ? count * 2 : 1) * size);
    if (!more) exit(LIVE_FAILED);
    return more;
}

/* --- lines --- */

/* In the process. It waits while the mutator takes messages, and no more once it does not. */
void text_line(const char *text)
{
    static uint64_t unsaid;
    const struct timespec step = {.tv_nsec = 1000 * 1000};
    line l = {.unsaid = __atomic_exchange_n(&unsaid, 0, __ATOMIC_RELAXED)};
    size_t size = offsetof(line, text) + strlen(strcpy(l.text, text)) + 1;
    bool said = inlay_message(0, &l, size);
    for (int tries = 0; !said && !l.unsaid && tries < TRIES; tries++) {
        nanosleep(&step, NULL);
        said = inlay_message(0, &l, size);
    }
    if (!said) __atomic_fetch_add(&unsaid, l.unsaid + 1, __ATOMIC_RELAXED);
}

static void take_line(const inlay_event *e, void *arg)
{
    line l = {0};
    (void)arg;
    memcpy(&l, e->data, e->size < sizeof l ? e->size : sizeof l - 1);
    lost += l.unsaid;
    fprintf(command.json ? stderr : stdout, "%s\n", l.text);
}

/* A process may print faster than they are taken: `most` at a time. */
static bool take_lines(void *arg)
{
    enum { BEAT = 1000 };
    inlay_event e;
    (void)arg;
    for (unsigned many = 0; many < BEAT && command_next(&command, &e); many++) {}
    return command_flush();
}

/* Nothing more comes. */
static void take_rest(void)
{
    inlay_event e;
    while (inlay_event_next(&e, 0)) {}
    command_flush();
}

/* --- what is inserted --- */

static void note_inserted(inlay_insertion *i, const inlay_proc *proc) { command_note(&command, i, proc); }

static void note_variable(const inlay_scope_static *v, const char *where)
{
    rows = grown(rows, row_count, sizeof *rows);
    rows[row_count++] = (row){.program = program_count, .where = where, .v = *v};
}

static inlay_expr for_thread(inlay_scope *names, inlay_expr e, uint64_t address)
{
    (void)names, (void)address;
    return command_for_thread(&command, e);
}

static text_code code = {.names = text_line_routines,
                         .made = for_thread,
                         .inserted = note_inserted,
                         .variable = note_variable,
                         .places = &places,
                         .refused = &refused};

static void insert(void)
{
    bool by_image = text_code_is_by_image(&code);
    for (inlay_image *i = inlay_process_image_first(command.process); i; i = inlay_image_next(i)) {
        if (by_image) text_code_in_image(&code, i);
        for (inlay_proc *p = by_image ? NULL : inlay_image_proc_first(i); p; p = inlay_proc_next(p))
            text_code_in_proc(&code, p);
    }
}

static void begins(void)
{
    places = refused = 0;
    insert();
    programs = grown(programs, program_count, sizeof *programs);
    char *name = strdup(inlay_process_program(command.process));
    if (!name) exit(LIVE_FAILED);
    programs[program_count++] = (program){.process = command.process,
                                          .name = name,
                                          .pid = inlay_process_pid(command.process),
                                          .places = places,
                                          .refused = refused};
}

static int nowhere(void)
{
    command_say(&command, "the code can be put nowhere");
    return command_end(&command, LIVE_FAILED);
}

static void is_in(void)
{
    unsigned not_in = command_refused(&command);
    places -= not_in, refused += not_in;
    programs[program_count - 1].places = places;
    programs[program_count - 1].refused = refused;
    if (!places && !command.children) exit(nowhere());
}

/* Variables lie in memory that this process has as well, until the handle goes. */
static void ended(inlay_process *p)
{
    unsigned n = 0;
    while (n < program_count && programs[n].process != p) n++;
    for (row *r = rows; r < rows + row_count; r++)
        if (r->program == n) memcpy(r->value, r->v.at, r->v.size < MOST_BYTES ? r->v.size : MOST_BYTES);
    if (n < program_count) programs[n].process = NULL;
}

/* --- the report --- */

/* Of many that are followed only some have the point. */
static bool is_told(const program *p) { return p == programs || p->places || p->refused; }

static void report_text(const program *p)
{
    char text[4 * MOST_BYTES];
    printf("%s", p->name);
    if (command.children) printf(" (process %d)", p->pid);
    printf(": code at %llu places, refused at %llu\n", (unsigned long long)p->places, (unsigned long long)p->refused);
    for (const row *r = rows; r < rows + row_count; r++) {
        if (r->program != (unsigned)(p - programs)) continue;
        inlay_scope_static_text(&r->v, r->value, text, sizeof text);
        printf("%s: %s = %s\n", r->where, r->v.name, text);
    }
}

static void report_json(const program *p)
{
    char text[4 * MOST_BYTES];
    inlay_json_begin(NULL, '{');
    inlay_json_string("command", "snippet");
    inlay_json_string("program", p->name);
    inlay_json_uint("pid", (uint64_t)p->pid);
    inlay_json_uint("places", p->places);
    inlay_json_begin("variables", '[');
    for (const row *r = rows; r < rows + row_count; r++) {
        if (r->program != (unsigned)(p - programs)) continue;
        inlay_scope_static_text(&r->v, r->value, text, sizeof text);
        inlay_json_begin(NULL, '{');
        inlay_json_string("procedure", r->where);
        inlay_json_string("name", r->v.name);
        inlay_json_string("type", r->v.type);
        inlay_json_string("value", text);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    command_begin(&command, argc, argv);
    code.point = command.words[0];
    code.code = command.words[1];
    char why[400];
    if (!text_code_begin(&code)) return LIVE_FAILED;
    begins();
    uint64_t all = places;
    if (!places && (refused || !command.children)) {
        if (refused) return nowhere();
        command_say(&command, "there is no point '%s'%s", code.point,
                    text_code_why_none(&code, command.process, why, sizeof why));
        return command_end(&command, LIVE_FAILED);
    }
    inlay_on_event(INLAY_EVENTS(MESSAGE), take_line, NULL);
    command_commit(&command);
    command_say(&command, "code at %llu places of process %d", (unsigned long long)places,
                inlay_process_pid(command.process));
    command_wait(&command, take_lines, NULL);
    command_remove(&command);
    take_rest();
    if (lost) command_say(&command, "%llu lines that the code has printed are lost", (unsigned long long)lost);
    for (const program *p = programs; p < programs + program_count; p++) {
        if (p->process) ended(p->process);
        if (is_told(p)) (command.json ? report_json : report_text)(p);
        all += p->places;
    }
    if (!all) command_say(&command, "there is no point '%s'", code.point);
    return command_end(&command, all ? LIVE_OK : LIVE_FAILED);
}
