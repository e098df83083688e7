/* Puts random snippets into the program of around.c: the n-th line of a file to the entry of the procedure pN, or,
 * where n is odd, to its exit. */
#include <inlay.h>

#include "all.h"
#include "routines.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *file = "texts";
static bool own; /* routines are the tool's */
static char **texts;
static unsigned count;

static bool read_texts(void)
{
    size_t room = 0;
    FILE *f = fopen(file, "r");
    char *line = NULL;
    ssize_t n;
    while (f && (n = getline(&line, &room, f)) > 0) {
        line[n - 1] = 0;
        texts = realloc(texts, (count + 1) * sizeof *texts);
        if (!texts || !(texts[count++] = strdup(line))) return false;
    }
    free(line);
    if (f) fclose(f);
    return count > 0;
}

static void give_routines(inlay_scope *s)
{
    inlay_scope_routine(s, "double mixed(int, double, float, long)", (void (*)(void))mixed);
    inlay_scope_routine(s, "float half_of(float, unsigned char)", (void (*)(void))half_of);
    inlay_scope_routine(s, "short nearest(double)", (void (*)(void))nearest);
    inlay_scope_routine(s, "bool same(float, double)", (void (*)(void))same);
    inlay_scope_routine(
        s, "long many(int, long, short, unsigned, signed char, long, unsigned short, double, long, float, bool)",
        (void (*)(void))many);
}

static void each_proc(inlay_proc *p, void *arg)
{
    static inlay_scope *scope; /* of many: it remembers what it has found */
    char *end;
    const char *name = inlay_proc_name(p);
    (void)arg;
    if (name[0] != 'p' || name[1] < '0' || name[1] > '9') return;
    unsigned long n = strtoul(name + 1, &end, 10);
    if (*end || n >= count) return;
    if (!scope || n % 50 == 0) {
        scope = inlay_scope_new(inlay_proc_image(p), n & 64 ? inlay_proc_address(p) : 0);
        if (own) give_routines(scope);
    }
    inlay_expr e = inlay_scope_parse(scope, texts[n]);
    if (!e) inlay_warn("%s: %s: %s", name, inlay_scope_error(scope), texts[n]);
    else inlay_insert(n & 1 ? inlay_proc_exit(p) : inlay_proc_entry(p), e);
}

int main(int argc, char **argv)
{
    inlay_option_string(&file, "texts", 0, "a file, a snippet a line");
    inlay_option_flag(&own, "own", 0, "the routines that they call are the tool's, not the program's");
    inlay_init(&argc, &argv, "puts random snippets into procedures");
    if (!read_texts()) inlay_warn("no texts in %s", file);
    inlay_on_proc(each_proc, NULL);
    return inlay_start();
}
