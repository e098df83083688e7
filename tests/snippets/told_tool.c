/* What variables hold as places are first met, for told.py: --places=FILE has lines "ADDRESS NAME i" (or f: floating
 * point), addresses as in the program's file. The result has a line for each, "ADDRESS NAME = VALUE", or
 * "ADDRESS NAME ! WHY". */
#include <inlay.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NAME = 64, WHY = 200 };

typedef struct place {
    struct place *next;
    uint64_t address;
    char name[NAME], why[WHY];
    char kind;
    struct {
        int64_t integer;
        double real;
        int64_t done;
    } value;
} place;
typedef struct all {
    place *first;
} all;

static const char *file = "";
static all *places;

static const char *insert(place *p, inlay_scope *names, inlay_image *image)
{
    char code[3 * NAME];
    inlay_insn *at = inlay_insn_at(p->address + inlay_image_bias(image));
    bool real = p->kind == 'f';
    if (!at) return "no instruction";
    inlay_scope_variable(names, "told_done", "long", &p->value.done);
    inlay_scope_variable(names, "told_value", real ? "double" : "long",
                         real ? (void *)&p->value.real : &p->value.integer);
    snprintf(code, sizeof code, "if (!told_done) { told_value = %s(%s); told_done = 1; }", real ? "" : "(long)",
             p->name);
    inlay_expr e = inlay_scope_parse(names, code);
    if (!e) return inlay_scope_error(names);
    return inlay_insert(inlay_before(at), e) ? NULL : "not inserted";
}

static place *read_places(void)
{
    FILE *f = fopen(file, "r");
    place *list = NULL, **end = &list, p;
    memset(&p, 0, sizeof p);
    while (f && fscanf(f, "%" SCNx64 " %63s %c", &p.address, p.name, &p.kind) == 3) {
        *end = inlay_alloc(sizeof p);
        if (!*end) exit(1);
        **end = p;
        end = &(*end)->next;
    }
    if (f) fclose(f);
    return list;
}

static void each_image(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    places->first = read_places();
    for (place *p = places->first; p; p = p->next) {
        uint64_t address = p->address + inlay_image_bias(image);
        inlay_scope *names = inlay_scope_new(image, address);
        const char *why = names ? insert(p, names, image) : "no scope";
        if (why) snprintf(p->why, sizeof p->why, "%s", why);
    }
}

static void report(int status, void *arg)
{
    (void)status, (void)arg;
    for (const place *p = places->first; p; p = p->next) {
        fprintf(inlay_out(), "%" PRIx64 " %s ", p->address, p->name);
        if (*p->why) fprintf(inlay_out(), "! %s\n", p->why);
        else if (!p->value.done) fprintf(inlay_out(), "! not met\n");
        else if (p->kind == 'f') fprintf(inlay_out(), "= %.17g\n", p->value.real);
        else fprintf(inlay_out(), "= %" PRId64 "\n", p->value.integer);
    }
}

int main(int argc, char **argv)
{
    inlay_option_string(&file, "places", 'p', "the file with the places");
    inlay_init(&argc, &argv, "what variables hold at places");
    places = inlay_alloc(sizeof *places);
    if (!places) return 1;
    inlay_on_image_load(each_image, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
