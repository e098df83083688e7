/* valueprof: how often an argument is what it was the last time, and how often zero, for the first argument of each
 * procedure. Nothing is called when the program runs: all of it is expressions.
 *
 *         calls   as before    zero  procedure
 *          1200      98.1 %   0.0 %  memset (libc.so.6)
 */
#include <inlay.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct row { /* the procedure's record */
    struct row *next;
    inlay_counter calls, same, zero;
    uint64_t last; /* of any thread: two at once may miss each other */
    const char *name, *image;
} row;

static struct shared {
    row *rows;
} * shared;
static uint64_t top = 20;

static const char *keep(const char *s)
{
    char *copy = inlay_alloc(strlen(s) + 1);
    return copy ? strcpy(copy, s) : "?";
}

static void each_proc(inlay_proc *proc, void *arg)
{
    (void)arg;
    row *r = inlay_proc_record(proc, sizeof *r);
    if (!r) return;
    *r = (row){.next = shared->rows, .name = keep(inlay_proc_name(proc))};
    r->image = keep(inlay_image_name(inlay_proc_image(proc)));
    shared->rows = r;
    inlay_expr value = inlay_argument(0), last = inlay_pointer(&r->last);
    inlay_expr is_same = inlay_binary(INLAY_EQ, value, inlay_load(last, 8));
    inlay_expr is_zero = inlay_binary(INLAY_EQ, value, inlay_const(0));
    inlay_point *entry = inlay_proc_entry(proc);
    inlay_insert(entry, inlay_count(&r->calls, 1));
    inlay_insert(entry, inlay_if(is_same, inlay_count(&r->same, 1), inlay_store(last, value, 8)));
    inlay_insert(entry, inlay_if(is_zero, inlay_count(&r->zero, 1), NULL));
}

static int more_calls(const void *a, const void *b)
{
    const row *x = *(row *const *)a, *y = *(row *const *)b;
    uint64_t m = inlay_counter_sum(&x->calls), n = inlay_counter_sum(&y->calls);
    if (m != n) return m < n ? 1 : -1;
    int order = strcmp(x->image, y->image);
    return order ? order : strcmp(x->name, y->name);
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    size_t n = 0;
    for (const row *r = shared->rows; r; r = r->next) n++;
    row **list = calloc(n + 1, sizeof *list);
    if (!list) return;
    n = 0;
    for (row *r = shared->rows; r; r = r->next)
        if (inlay_counter_sum(&r->calls)) list[n++] = r;
    qsort(list, n, sizeof *list, more_calls);
    fprintf(inlay_out(), "%13s %11s %7s  procedure\n", "calls", "as before", "zero");
    for (size_t i = 0; i < n && (!top || i < top); i++) {
        double calls = (double)inlay_counter_sum(&list[i]->calls);
        fprintf(inlay_out(), "%13.0f %9.1f %% %5.1f %%  %s (%s)\n", calls,
                100 * (double)inlay_counter_sum(&list[i]->same) / calls,
                100 * (double)inlay_counter_sum(&list[i]->zero) / calls, list[i]->name, list[i]->image);
    }
    free(list);
}

int main(int argc, char **argv)
{
    inlay_option_uint(&top, "top", 'n', "procedures to show; 0: all (default 20)");
    inlay_init(&argc, &argv, "how often the first argument of a procedure is what it was before");
    shared = inlay_alloc(sizeof *shared);
    inlay_on_proc(each_proc, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
