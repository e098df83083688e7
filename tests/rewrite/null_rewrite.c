/* Rewrites a file without a tool, and checks the plan: null_rewrite FILE OUT [option...]
 *
 *     --procs=FROM-TO   moves only the procedures of these numbers, to find the one that breaks
 *     --skip=N          ... not this one
 *     --count           weaves a counter's increment into every block (the result does not run by itself:
 *                       it needs a thread frame; for reading and timing)
 *     --list            prints what is left alone, and why
 *     --map             prints old and new address of each moved procedure
 */
#include "elf/elf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

inl_status move_plan_check(const move_plan *, inl_error *);

typedef struct choice {
    unsigned from, to, skip;
    bool count, list, map;
    snippet *one;
} choice;

static bool wanted(void *arg, const cfg_program *p, uint32_t proc)
{
    const choice *c = arg;
    (void)p;
    return proc >= c->from && proc <= c->to && proc != c->skip;
}

static void instrument(void *arg, const cfg_program *p, uint32_t proc, weave_run *run)
{
    choice *c = arg;
    const char *why;
    (void)p, (void)proc;
    for (uint32_t i = 0; i < run->block_count; i++) weave_insert_at(run, WEAVE_ANYWHERE, i, c->one, false, &why);
}

static void fail(const inl_error *e)
{
    fprintf(stderr, "null_rewrite: %s (%#" PRIx64 ")\n", e->text, e->address);
    exit(1);
}

static void parse(choice *c, int argc, char **argv)
{
    for (int i = 3; i < argc; i++) {
        if (sscanf(argv[i], "--procs=%u-%u", &c->from, &c->to) == 2) continue;
        if (sscanf(argv[i], "--skip=%u", &c->skip) == 1) continue;
        c->count |= !strcmp(argv[i], "--count");
        c->list |= !strcmp(argv[i], "--list");
        c->map |= !strcmp(argv[i], "--map");
    }
}

static void report(const cfg_program *p, const move_plan *plan, const choice *c)
{
    size_t how[MOVE_UNWANTED + 1] = {0};
    for (uint32_t i = 0; i < p->proc_count; i++) {
        const move_proc *r = &plan->procs[i];
        const char *name = p->procs[i].name ? p->procs[i].name : "?";
        how[r->how]++;
        if (c->list && r->how == MOVE_LEFT)
            printf("left %u %#" PRIx64 " %" PRIu64 " %s: %s\n", i, p->procs[i].addr, p->procs[i].size, name, r->reason);
        if (c->map && r->new_addr)
            printf("moved %u %#" PRIx64 " -> %#" PRIx64 " %" PRIu64 " -> %u %s\n", i, p->procs[i].addr, r->new_addr,
                   p->procs[i].size, r->new_size, name);
    }
    printf("%u procedures: moved %zu + %zu short + %zu quietly, left %zu, unwanted %zu; %" PRIu64 " of %" PRIu64
           " bytes of text moved to %zu; %zu patches\n",
           p->proc_count, how[MOVE_MOVED], how[MOVE_MOVED_SHORT], how[MOVE_MOVED_QUIETLY], how[MOVE_LEFT],
           how[MOVE_UNWANTED], plan->moved_bytes, p->text_bytes, plan->text_size, plan->patch_count);
}

int main(int argc, char **argv)
{
    inl_error e = {0};
    inl_arena arena = {0};
    image *im = NULL;
    cfg_program *p = NULL;
    move_plan *plan = NULL;
    choice c = {.to = UINT32_MAX, .skip = UINT32_MAX};
    if (argc < 3) return 2;
    parse(&c, argc, argv);
    c.one = snippet_new(&arena, SNIPPET_COUNT);
    snippet *amount = snippet_new(&arena, SNIPPET_CONST);
    amount->value = 1;
    c.one->a = amount;
    elf_target target;
    move_client client = {.arg = &c, .wanted = wanted, .instrument = c.count ? instrument : NULL};
    if (image_open(argv[1], &im, &e)) fail(&e);
    elf_target_begin(&target, im);
    if (cfg_program_analyse(im, NULL, &p, &e) || move_plan_make(p, 0, &target.target, &client, &plan, &e)) fail(&e);
    report(p, plan, &c);
    if (move_plan_check(plan, &e) || move_commit(plan, &target.target, &e) ||
        elf_write(&target, plan, NULL, argv[2], &e))
        fail(&e);
    elf_target_end(&target);
    move_plan_free(plan);
    cfg_program_free(p);
    image_close(im);
    inl_arena_free(&arena);
    return 0;
}
