/* break: breakpoints whose condition is evaluated inside the process.
 *
 *     inlay break -p PID 'write if fd == 1 && count > 4096'
 *
 * While the condition is false it costs what its instructions do. Where it holds, the thread tells its parameters in
 * messages, one each, and then waits (inlay/event.h); the others run on. */
#include "../text_code.h"
#include "command.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char usage[] =
    "usage: inlay break [OPTIONS] -p PID 'POINT [if CONDITION]'\n"
    "       inlay break [OPTIONS] 'POINT [if CONDITION]' -- PROGRAM [ARGS]\n"
    "\n"
    "Waits for a thread of a process that comes to POINT while CONDITION holds, and prints its registers, the "
    "procedure's\n"
    "parameters by name and type (structures with their members), and its stack; until Ctrl-C, or the process's end, "
    "or\n"
    "for --for SECONDS. Then nothing of it is left there. POINT and CONDITION are as for inlay snippet (see its "
    "--help):\n"
    "NAME, NAME:return, FILE:LINE, "
    "0xADDRESS; a C expression with parameters, $arg0, registers. Processes that it forks meanwhile stop nowhere, if\n"
    "--children is not given.\n"
    "\n"
    "  inlay break -p PID --then=detach 'write if $arg0 == 2'\n"
    "\n"
    "  -p PID                the process\n"
    "  --then=WHAT           behind a hit: continue (the default), stop the process as SIGSTOP does, or detach\n"
    "  --children            where processes come that it forks from now on, too, and programs that it\n"
    "                        and they execute, from their first instruction\n"
    "  --thread TID          where this thread of it comes, alone\n"
    "  --hits N              so many, then detach\n"
    "  --for SECONDS         so long\n"
    "  -o FILE               hits go there instead of standard output\n"
    "  --format=text|json    how they are written: a JSON object a line\n";

enum { MOST_PARAMETERS = 32, MOST_WORDS = 8, MOST_FRAMES = 64, MOST_BYTES = 64 << 10, MOST_TEXT = 1024 };
enum { PARAMETER_BITS = 8, WORD_BITS = 8, WORD = 8 }; /* of a message's number, from the lowest on */
typedef enum told { NOT_TOLD, A_VALUE, AN_ADDRESS, IN_WORDS } told;
typedef struct place {
    inlay_scope_static parameters[MOST_PARAMETERS];
    inlay_expr values[MOST_PARAMETERS];
    told told[MOST_PARAMETERS]; /* what comes in messages */
    unsigned count;
} place;
typedef struct teller { /* a thread that tells values */
    struct teller *next;
    int tid;
    uint64_t values[MOST_PARAMETERS][MOST_WORDS];
} teller;

static place *places;
static unsigned place_count;
static teller *tellers;
static uint64_t good, refused, hits;
static uint64_t most; /* hits; 0: any number */
static const char *then = "continue", *most_hits;
static const live_option options[] = {{"--then", &then, NULL}, {"--hits", &most_hits, NULL}, {NULL, NULL, NULL}};
static void begins(void);
static void is_in(void);
static void ended(inlay_process *p) { (void)p; }
static live_command command = {.name = "break",
                               .begins = begins,
                               .is_in = is_in,
                               .ended = ended,
                               .kinds = INLAY_EVENTS(MESSAGE) | INLAY_EVENTS(BREAK),
                               .usage = usage,
                               .by_thread = true,
                               .options = options,
                               .least = 1,
                               .most = 1};

/* --- in the process --- */

static void tell_word(uint64_t which, uint64_t value) { inlay_message(which, &value, sizeof value); }
static void tell_real(uint64_t which, double value) { inlay_message(which, &value, sizeof value); }

/* --- what is inserted --- */

static void give_names(inlay_scope *names)
{
    inlay_scope_routine(names, "void inlay_tell_word(unsigned long, unsigned long)", (void (*)(void))tell_word);
    inlay_scope_routine(names, "void inlay_tell_real(unsigned long, double)", (void (*)(void))tell_real);
}

static void note_parameter(const inlay_scope_static *v, void *arg)
{
    place *p = arg;
    if (p->count < MOST_PARAMETERS) p->parameters[p->count++] = *v;
}

static inlay_expr tell_part(inlay_scope *names, const place *p, unsigned k, unsigned word, inlay_expr value)
{
    bool real = p->parameters[k].format == 'f';
    uint64_t number = ((uint64_t)(p - places) << WORD_BITS | word) << PARAMETER_BITS | k;
    if (!real) value = inlay_scope_cast(names, "unsigned long", value);
    const inlay_expr arguments[] = {inlay_const(number), value};
    inlay_expr routine = inlay_scope_find(names, real ? "inlay_tell_real" : "inlay_tell_word");
    return value ? inlay_typed_call(names, routine, 2, arguments) : NULL;
}

/* What was passed as a whole: where it lies, or itself. */
static inlay_expr tell_whole(inlay_scope *names, place *p, unsigned k)
{
    size_t size = p->parameters[k].size;
    inlay_expr all = NULL, address = inlay_typed_address(names, p->values[k]);
    p->told[k] = address ? AN_ADDRESS : IN_WORDS;
    if (address) return tell_part(names, p, k, 0, address);
    for (unsigned i = 0; i * WORD < size; i++) {
        unsigned n = size - i * WORD < WORD ? (unsigned)(size - i * WORD) : WORD;
        inlay_expr one = i < MOST_WORDS ? inlay_typed_word(names, p->values[k], i * WORD, n) : NULL;
        one = one ? tell_part(names, p, k, i, one) : NULL;
        if (!one) return NULL;
        all = all ? inlay_sequence(all, one) : one;
    }
    return all;
}

/* NULL: it cannot be reached from here. */
static inlay_expr tell(inlay_scope *names, place *p, unsigned k)
{
    p->values[k] = inlay_scope_find(names, p->parameters[k].name);
    p->told[k] = A_VALUE;
    if (!p->values[k]) return NULL;
    return p->parameters[k].format ? tell_part(names, p, k, 0, p->values[k]) : tell_whole(names, p, k);
}

static inlay_expr make_hit(inlay_scope *names, inlay_expr condition, uint64_t address)
{
    (void)address;
    if (!(place_count & (place_count - 1))) {
        places = realloc(places, (place_count ? place_count * 2 : 1) * sizeof *places);
        if (!places) exit(LIVE_FAILED);
    }
    place *p = &places[place_count];
    *p = (place){0};
    inlay_scope_parameters(names, note_parameter, p);
    inlay_expr hit = inlay_call(inlay_break_here, inlay_const(place_count++), inlay_context_arg());
    for (unsigned k = p->count; k--;) {
        inlay_expr one = tell(names, p, k);
        if (one) hit = inlay_sequence(one, hit);
        else p->told[k] = NOT_TOLD;
    }
    return command_for_thread(&command, inlay_typed_if(names, condition, hit, NULL));
}

static void note_inserted(inlay_insertion *i, const inlay_proc *proc) { command_note(&command, i, proc); }

static void no_variable(const inlay_scope_static *v, const char *where) { (void)v, (void)where; }

static text_code code = {.names = give_names,
                         .made = make_hit,
                         .inserted = note_inserted,
                         .variable = no_variable,
                         .places = &good,
                         .refused = &refused};

/* 'POINT if CONDITION' */
static void read_words(char *text)
{
    char *condition = strstr(text, " if ");
    code.point = text;
    code.code = condition ? condition + 4 : "1";
    if (condition) *condition = 0;
    while (*code.point == ' ') code.point++;
    size_t n = strlen(code.point);
    while (n && code.point[n - 1] == ' ') text[(size_t)(code.point - text) + --n] = 0;
}

static void begins(void)
{
    bool by_image = text_code_is_by_image(&code);
    for (inlay_image *i = inlay_process_image_first(command.process); i; i = inlay_image_next(i)) {
        if (by_image) text_code_in_image(&code, i);
        for (inlay_proc *p = by_image ? NULL : inlay_image_proc_first(i); p; p = inlay_proc_next(p))
            text_code_in_proc(&code, p);
    }
}

static int nowhere(void)
{
    command_say(&command, "there can be no breakpoint");
    return command_end(&command, LIVE_FAILED);
}

static void is_in(void)
{
    unsigned not_in = command_refused(&command);
    good -= not_in, refused += not_in;
    if (!good && !command.children) exit(nowhere());
}

/* --- what is printed --- */

static teller *teller_of(int tid)
{
    teller *t = tellers;
    while (t && t->tid != tid) t = t->next;
    if (t) return t;
    t = calloc(1, sizeof *t);
    if (!t) exit(LIVE_FAILED);
    *t = (teller){.next = tellers, .tid = tid};
    return tellers = t;
}

static void note_value(const inlay_event *e)
{
    unsigned k = e->number & ((1u << PARAMETER_BITS) - 1), word = e->number >> PARAMETER_BITS & ((1u << WORD_BITS) - 1);
    if (e->size == sizeof(uint64_t) && k < MOST_PARAMETERS && word < MOST_WORDS)
        memcpy(&teller_of(e->tid)->values[k][word], e->data, sizeof(uint64_t));
}

static size_t read_there(void *arg, void *to, uint64_t from, size_t bytes)
{
    return inlay_event_read(arg, to, from, bytes);
}

/* A parameter's; "?": it is not known. */
static void value_text(const inlay_event *e, const place *p, unsigned k, char *out, size_t size)
{
    const inlay_scope_static *v = &p->parameters[k];
    const uint64_t *values = teller_of(e->tid)->values[k];
    void *event = (void *)(uintptr_t)e, *there = NULL;
    const void *bytes = values;
    double real;
    memcpy(&real, values, sizeof real);
    float narrow = (float)real;
    strcpy(out, "?");
    if (p->told[k] == A_VALUE && v->format == 'f' && v->size == sizeof narrow) bytes = &narrow;
    if (p->told[k] == AN_ADDRESS) {
        bytes = there = v->size && v->size <= MOST_BYTES ? malloc(v->size) : NULL;
        if (there && inlay_event_read(e, there, *values, v->size) != v->size) bytes = NULL;
    }
    if (p->told[k] && bytes) inlay_typed_text(p->values[k], bytes, read_there, event, out, size);
    free(there);
}

static void place_text(const inlay_event *e, uint64_t address, char *out, size_t size)
{
    inlay_proc *p = inlay_process_proc_at(e->process, address);
    inlay_image *i = inlay_process_image_at(e->process, address);
    const char *file;
    unsigned line;
    int n = snprintf(out, size, "%s", p ? inlay_proc_display_name(p) : "?");
    if (p && address != inlay_proc_address(p) && (size_t)n < size)
        n += snprintf(out + n, size - (size_t)n, "+%#" PRIx64, address - inlay_proc_address(p));
    if (i && (size_t)n < size) n += snprintf(out + n, size - (size_t)n, " (%s)", inlay_image_name(i));
    if (inlay_line_at(address, &file, &line) && (size_t)n < size)
        snprintf(out + n, size - (size_t)n, " at %s:%u", file, line);
}

static void print_text(const inlay_event *e, const inlay_stack_frame *frames, unsigned count)
{
    char text[MOST_TEXT];
    const place *p = &places[e->number];
    place_text(e, e->context->pc, text, sizeof text);
    printf("hit %" PRIu64 ": thread %d", hits, e->tid);
    if (command.children) printf(" of process %d", inlay_event_pid(e));
    printf(" in %s\n", text);
    for (unsigned k = 0; k < p->count; k++) {
        value_text(e, p, k, text, sizeof text);
        printf("  %s: %s = %s\n", p->parameters[k].name, p->parameters[k].type, text);
    }
    for (unsigned r = 0; r < sizeof e->context->gpr / sizeof *e->context->gpr; r++)
        printf("  %-4s%016" PRIx64 "%s", inlay_reg_name(r), e->context->gpr[r], r % 4 == 3 ? "\n" : "");
    printf("  pc  %016" PRIx64 "  flags %" PRIx64 "\n", e->context->pc, e->context->flags);
    for (unsigned k = 0; k < count; k++) {
        place_text(e, frames[k].address, text, sizeof text);
        printf("  #%-2u %016" PRIx64 " %s\n", k, frames[k].address, text);
    }
}

static void json_parameters(const inlay_event *e)
{
    char text[MOST_TEXT];
    const place *p = &places[e->number];
    inlay_json_begin("parameters", '[');
    for (unsigned k = 0; k < p->count; k++) {
        value_text(e, p, k, text, sizeof text);
        inlay_json_begin(NULL, '{');
        inlay_json_string("name", p->parameters[k].name);
        inlay_json_string("type", p->parameters[k].type);
        inlay_json_string("value", strcmp(text, "?") ? text : NULL);
        inlay_json_end();
    }
    inlay_json_end();
}

static void print_json(const inlay_event *e, const inlay_stack_frame *frames, unsigned count)
{
    char text[512];
    inlay_json_begin(NULL, '{');
    inlay_json_uint("hit", hits);
    inlay_json_uint("pid", (uint64_t)inlay_event_pid(e));
    inlay_json_uint("thread", (uint64_t)e->tid);
    json_parameters(e);
    inlay_json_begin("registers", '{');
    for (unsigned r = 0; r < sizeof e->context->gpr / sizeof *e->context->gpr; r++)
        inlay_json_uint(inlay_reg_name(r), e->context->gpr[r]);
    inlay_json_uint("pc", e->context->pc);
    inlay_json_uint("flags", e->context->flags);
    inlay_json_end();
    inlay_json_begin("stack", '[');
    for (unsigned k = 0; k < count; k++) {
        place_text(e, frames[k].address, text, sizeof text);
        inlay_json_begin(NULL, '{');
        inlay_json_uint("address", frames[k].address);
        inlay_json_string("place", text);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static char state_of(int pid)
{
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && !fgets(line, sizeof line, f)) *line = 0;
    if (f) fclose(f);
    const char *name_ends = strrchr(line, ')');
    return name_ends && name_ends[1] ? name_ends[2] : 0;
}

/* The signal reaches the threads one after the other, and those that still run would come here again and again. Of a
 * first thread that has ended nothing can be seen. */
static void stop(int pid)
{
    enum { PATIENCE = 1000 };
    const struct timespec step = {.tv_nsec = 1000 * 1000};
    if (kill(pid, SIGSTOP) != 0) return;
    for (int tries = 0; tries < PATIENCE && !strchr("TtZX", state_of(pid)); tries++) nanosleep(&step, NULL);
    command_say(&command, "process %d is stopped; kill -CONT %d lets it go on", pid, pid);
}

/* False: no more are wanted. */
static bool is_hit(const inlay_event *e)
{
    inlay_stack_frame frames[MOST_FRAMES];
    if (e->kind == INLAY_EVENT_MESSAGE) note_value(e);
    if (e->kind != INLAY_EVENT_BREAK || e->number >= place_count) return true;
    unsigned count = inlay_event_stack(e, frames, MOST_FRAMES);
    int pid = inlay_event_pid(e);
    hits++;
    (command.json ? print_json : print_text)(e, frames, count);
    bool is_read = command_flush(); /* nobody may read on */
    bool goes_on = is_read && strcmp(then, "detach") && !(most && hits >= most);
    if (!strcmp(then, "stop") && pid) stop(pid);
    if (goes_on) inlay_event_resume(e);
    return goes_on; /* letting the process go lets the thread go */
}

/* Some at a time, since at a busy place there is no end of them; false: no more are wanted, now or later. */
static bool take_events(void *over)
{
    enum { BEAT = 1000 };
    static bool is_done;
    inlay_event e;
    for (unsigned many = 0; !is_done && many < BEAT; many++) {
        if (!(over ? inlay_event_next(&e, 0) : command_next(&command, &e))) break;
        if (is_hit(&e)) continue;
        is_done = true;
        command_remove(&command);
        inlay_event_resume(&e);
    }
    return !is_done;
}

int main(int argc, char **argv)
{
    inlay_mutator(&argc, &argv);
    command_begin(&command, argc, argv);
    if (strcmp(then, "continue") && strcmp(then, "stop") && strcmp(then, "detach")) {
        command_say(&command, "--then is continue, stop or detach, not %s", then);
        return LIVE_USAGE;
    }
    most = most_hits ? command_number(&command, "--hits", most_hits) : 0;
    read_words(command.words[0]);
    char why[400];
    if (!text_code_begin(&code)) return LIVE_FAILED;
    begins();
    if (!good && (refused || !command.children)) {
        if (refused) return nowhere();
        command_say(&command, "there is no point '%s'%s", code.point,
                    text_code_why_none(&code, command.process, why, sizeof why));
        return command_end(&command, LIVE_FAILED);
    }
    command_commit(&command);
    command_say(&command, "breakpoints in process %d: %" PRIu64, inlay_process_pid(command.process), good);
    command_wait(&command, take_events, NULL);
    take_events(&command); /* what has been hit already */
    if (!good) command_say(&command, "there was no point '%s'", code.point);
    return command_end(&command, good ? LIVE_OK : LIVE_FAILED);
}
