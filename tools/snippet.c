/* snippet: runs code, given as text, at points of a program.
 *
 *     inlay snippet write:entry 'static long calls; if ($arg0 == 1) calls++;' -- ls -l
 *
 * The language is C's (docs/howto-snippets.md). Variables that the code declares `static` are shared by all threads
 * (they are not atomic) and reported when the program ends, one row for each procedure; print(VALUE),
 * print_real(double) and show(const char *) write a line at once. The code is compiled for each point; names are those
 * seen there.
 */
#include "text_code.h"

#include <inttypes.h>
#include <stdio.h>

typedef struct row {
    struct row *next;
    const char *proc; /* that it belongs to */
    inlay_scope_static v;
} row;

typedef struct found_things { /* what instrumentation finds, for the report */
    row *rows;
    uint64_t places, refused;
    bool met;
} found_things;

static found_things *found;

/* A report as JSON is nothing else. */
void text_line(const char *line) { fprintf(inlay_format_is_json() ? stderr : inlay_out(), "%s\n", line); }

static void keep(const inlay_scope_static *v, const char *proc)
{
    row *r = inlay_alloc(sizeof *r);
    if (!r) return;
    *r = (row){found->rows, proc, *v};
    found->rows = r;
}

static text_code code = {.point = "main", .code = "", .names = text_line_routines, .variable = keep};

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    text_code_in_proc(&code, proc);
}

static void each_image(inlay_image *image, void *arg)
{
    (void)arg;
    if (inlay_image_wanted(image)) text_code_in_image(&code, image);
}

/* So many places of each procedure have code. */
static void count_place(inlay_insertion *i, const inlay_proc *proc)
{
    uint64_t *places = inlay_proc_record((inlay_proc *)proc, sizeof *places);
    (void)i;
    if (places) ++*places;
}

/* It stays as it is, with what was inserted. */
static void left_alone(inlay_proc *proc, const char *why, void *arg)
{
    const uint64_t *places = inlay_proc_record(proc, sizeof *places);
    bool is_meant = !text_code_is_by_image(&code) && text_code_means(&code, proc);
    (void)arg;
    if (!places || (!*places && !is_meant)) return;
    found->met = true;
    found->places -= *places;
    found->refused += *places ? *places : 1;
    inlay_warn("%s (%s): no code can be put in: %s", inlay_proc_name(proc), inlay_image_name(inlay_proc_image(proc)),
               why);
}

/* --- the report --- */

static void warn_of_no_point(void)
{
    char why[400];
    inlay_warn("no point '%s' has been met%s", code.point,
               text_code_why_none(&code, inlay_process_self(), why, sizeof why));
}

static void report_json(void)
{
    char text[400];
    inlay_json_one_line();
    inlay_json_begin(NULL, '{');
    inlay_json_string("tool", "snippet");
    inlay_json_string("program", inlay_program());
    inlay_json_uint("pid", (uint64_t)inlay_pid());
    inlay_json_uint("places", found->places);
    inlay_json_begin("variables", '[');
    for (row *r = found->rows; r; r = r->next) {
        inlay_scope_static_text(&r->v, r->v.at, text, sizeof text);
        inlay_json_begin(NULL, '{');
        inlay_json_string("procedure", r->proc);
        inlay_json_string("name", r->v.name);
        inlay_json_string("type", r->v.type);
        inlay_json_string("value", text);
        inlay_json_end();
    }
    inlay_json_end();
    inlay_json_end();
}

static void report(int status, void *arg)
{
    char text[400];
    (void)status, (void)arg;
    if (!found->places && !found->refused) warn_of_no_point();
    if (inlay_format_is_json()) {
        report_json();
        return;
    }
    fprintf(inlay_out(), "%s: code at %" PRIu64 " places, refused at %" PRIu64 "\n", inlay_program(), found->places,
            found->refused);
    for (row *r = found->rows; r; r = r->next) {
        inlay_scope_static_text(&r->v, r->v.at, text, sizeof text);
        fprintf(inlay_out(), "%s: %s = %s\n", r->proc, r->v.name, text);
    }
}

int main(int argc, char **argv)
{
    inlay_option_string(
        &code.point, "at", 'a',
        "where: PROCEDURE, PROCEDURE:KIND, FILE:LINE, ADDRESS or IMAGE:ADDRESS (see inlay snippet --help)");
    inlay_option_string(&code.code, "code", 'c', "what to do there, in a small C");
    inlay_init(&argc, &argv, "runs code given as text at points of the program");
    found = inlay_alloc(sizeof *found);
    if (!found || !text_code_begin(&code)) return 1;
    code.places = &found->places;
    code.refused = &found->refused;
    code.met = &found->met;
    code.inserted = count_place;
    if (text_code_is_by_image(&code)) inlay_on_image_load(each_image, NULL);
    else inlay_on_proc(each_proc, NULL);
    inlay_on_proc_left(left_alone, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
