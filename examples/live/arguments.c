/* Which arguments procedures of a running program are called with, and by whom.
 *
 *     inlay cc -O2 examples/live/arguments.c -o arguments
 *     ./arguments PID SECONDS open:sx write:dpd
 *
 * Behind the name each argument has a letter: s a string, x a number in hexadecimal digits, d a decimal one, p a
 * pointer. A routine in the process writes the call down, strings included: when the mutator reads it they may be gone.
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { MOST = 6, TEXT = 40, PROCS = 64 };
typedef struct call {
    uint64_t values[MOST], from;
    char texts[MOST][TEXT];
} call;
typedef struct traced {
    inlay_proc *proc;
    char forms[MOST + 1];
    inlay_insertion *at;
} traced;

static inlay_process *process;
static traced all[PROCS];
static unsigned count;

static int fail(const char *what)
{
    fprintf(stderr, "arguments: %s: %s\n", what, inlay_process_error());
    return 1;
}

/* --- in the process --- */

static void note(uint64_t which, const uint64_t *strings, uint64_t from, uint64_t a, uint64_t b, uint64_t c, uint64_t d,
                 uint64_t e, uint64_t f)
{
    call is = {.values = {a, b, c, d, e, f}, .from = from};
    for (unsigned k = 0; k < MOST; k++)
        if (*strings >> k & 1) inlay_memory_string(is.texts[k], is.values[k], TEXT);
    inlay_message(which, &is, sizeof is);
}

/* --- in the mutator --- */

/* NAME:FORMS */
static void trace(char *word)
{
    char *forms = strrchr(word, ':');
    uint64_t *strings = inlay_alloc(sizeof *strings); /* known to the process, too */
    traced *t = &all[count];
    if (forms) *forms++ = 0;
    for (inlay_image *i = inlay_process_image_first(process); i && !t->proc; i = inlay_image_next(i))
        t->proc = inlay_image_proc_named(i, word);
    if (!t->proc || !strings) {
        fprintf(stderr, "arguments: there is no procedure %s\n", word);
        return;
    }
    snprintf(t->forms, sizeof t->forms, "%s", forms ? forms : "");
    for (unsigned k = 0; t->forms[k]; k++) *strings |= (uint64_t)(t->forms[k] == 's') << k;
    inlay_expr code =
        inlay_call(note, inlay_const(count), inlay_pointer(strings), inlay_return_address(), inlay_argument(0),
                   inlay_argument(1), inlay_argument(2), inlay_argument(3), inlay_argument(4), inlay_argument(5));
    count += (t->at = inlay_insert(inlay_proc_entry(t->proc), code)) != NULL;
}

static void show(const inlay_event *e)
{
    const traced *t = &all[e->number];
    const call *is = e->data;
    const inlay_proc *from = inlay_process_proc_at(process, is->from);
    printf("%d  %s(", e->tid, inlay_proc_display_name(t->proc));
    for (unsigned k = 0; t->forms[k]; k++) {
        if (k) printf(", ");
        if (t->forms[k] == 's') printf("\"%s\"", is->texts[k]);
        else if (t->forms[k] == 'd') printf("%" PRId64, (int64_t)is->values[k]);
        else printf("%#" PRIx64, is->values[k]);
    }
    printf(") from %s\n", from ? inlay_proc_display_name(from) : "?");
    if (e->lost) printf("(%" PRIu64 " calls have found no room)\n", e->lost);
}

int main(int argc, char **argv)
{
    inlay_event e;
    inlay_mutator(&argc, &argv);
    if (argc < 4) return fprintf(stderr, "usage: arguments PID SECONDS NAME:FORMS...\n"), 2;
    process = inlay_process_attach(atoi(argv[1]));
    if (!process) return fail("cannot attach");
    for (int k = 3; k < argc && count < PROCS; k++) trace(argv[k]);
    if (!count) return 1;
    if (!inlay_process_watch(process, INLAY_EVENTS(MESSAGE) | INLAY_EVENTS(EXIT))) return fail("cannot watch");
    if (!inlay_process_commit(process)) return fail("cannot insert");
    fprintf(stderr, "arguments: %u procedures are traced\n", count);
    for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end;) {
        if (!inlay_event_next(&e, 100)) continue;
        if (e.kind == INLAY_EVENT_EXIT) break;
        show(&e);
    }
    for (unsigned k = 0; k < count; k++) inlay_remove(all[k].at);
    if (inlay_process_is_running(process) && !inlay_process_commit(process)) return fail("cannot remove");
    return !inlay_process_take_out(process);
}
