/* Where every byte of an image's text went: moved, left and why, not asked for, padding, what lies between blocks, what
 * belongs to no procedure. Each byte is counted once, stretch by stretch, so that all of them are the text's size; and
 * the largest procedures that were left, in which a program may spend most of its time. */
#include "tool/rewriter.h"

#include <inlay/output.h>

#include <stdlib.h>

typedef struct cause {
    const char *reason;
    uint64_t procs, bytes;
} cause;

enum { MOST_CAUSES = 64 };
typedef struct account {
    uint64_t moved, left, unwanted, between, padding, unknown;
    cause causes[MOST_CAUSES];
    size_t cause_count;
} account;

const char *rewriter_reason(const rewriter_image *i, uint32_t k)
{
    const move_proc *p = &i->plan->procs[k];
    if (p->reason) return p->reason;
    if (p->how == MOVE_MOVED_QUIETLY) return "runs before the tool";
    return p->how == MOVE_LEFT ? i->cfg->procs[k].reason : NULL;
}

/* The last entry takes what there is no room for. */
static void add_cause(account *a, const char *reason, uint64_t bytes)
{
    size_t k = 0;
    while (k < a->cause_count && a->causes[k].reason != reason) k++;
    if (k == MOST_CAUSES) k--;
    if (k == a->cause_count) a->causes[a->cause_count++] = (cause){reason, 0, 0};
    a->causes[k].procs++;
    a->causes[k].bytes += bytes;
}

static uint64_t code_bytes(const cfg_program *p, const cfg_proc *of)
{
    uint64_t sum = 0, at = of->addr;
    for (uint32_t b = of->first_block; b < of->first_block + of->block_count; b++) {
        uint64_t low = p->blocks[b].addr > at ? p->blocks[b].addr : at, end = p->blocks[b].addr + p->blocks[b].size;
        if (end <= low) continue; /* instructions that overlap are counted once */
        sum += end - low;
        at = end;
    }
    return sum;
}

/* Counts a procedure within [low, end) of the text; where it and its padding end. */
static uint64_t add_proc(account *a, const rewriter_image *i, uint32_t k, uint64_t low, uint64_t end)
{
    const cfg_proc *of = &i->cfg->procs[k];
    const move_proc *p = &i->plan->procs[k];
    uint64_t code = code_bytes(i->cfg, of), behind = of->addr + of->size;
    if (of->addr > low) a->unknown += of->addr - low;
    if (p->how == MOVE_LEFT) {
        a->left += code;
        add_cause(a, rewriter_reason(i, k), code);
    } else {
        *(p->how == MOVE_UNWANTED ? &a->unwanted : &a->moved) += code;
    }
    a->between += of->size - code;
    uint64_t padding = behind + of->padding > end ? end - behind : of->padding;
    a->padding += padding;
    return behind + padding;
}

static void add_up(account *a, const rewriter_image *i)
{
    uint64_t low, end;
    uint32_t k = 0;
    for (size_t s = 0; cfg_text_stretch(i->cfg, s, &low, &end); s++) {
        for (; k < i->cfg->proc_count && i->cfg->procs[k].addr < end; k++) low = add_proc(a, i, k, low, end);
        if (low < end) a->unknown += end - low;
    }
}

static int by_bytes(const void *a, const void *b)
{
    const cause *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

void rewriter_print_bytes(const rewriter_image *i)
{
    account a = {0};
    add_up(&a, i);
    qsort(a.causes, a.cause_count, sizeof(cause), by_bytes);
    inlay_json_begin("bytes", '{');
    inlay_json_uint("moved", a.moved);
    inlay_json_uint("left_alone", a.left);
    inlay_json_uint("not_asked_for", a.unwanted);
    inlay_json_uint("between_blocks", a.between);
    inlay_json_uint("padding", a.padding);
    inlay_json_uint("in_no_procedure", a.unknown);
    inlay_json_end();
    inlay_json_begin("left_because", '[');
    for (size_t k = 0; k < a.cause_count; k++) {
        inlay_json_begin(NULL, '{');
        inlay_json_string("reason", a.causes[k].reason ? a.causes[k].reason : "its code is not wholly known");
        inlay_json_uint("procedures", a.causes[k].procs);
        inlay_json_uint("bytes", a.causes[k].bytes);
        inlay_json_end();
    }
    inlay_json_end();
}

/* The largest ones, on a line of their own. */
void rewriter_say_left(const rewriter_image *i)
{
    enum { MOST = 3 };
    uint32_t largest[MOST];
    size_t n = 0;
    uint64_t bytes = 0;
    const cfg_proc *procs = i->cfg->procs;
    for (uint32_t k = 0; k < i->cfg->proc_count; k++) {
        if (i->plan->procs[k].how != MOVE_LEFT || !procs[k].size) continue;
        bytes += procs[k].size;
        size_t at = n < MOST ? n++ : MOST;
        for (; at > 0 && procs[largest[at - 1]].size < procs[k].size; at--)
            if (at < MOST) largest[at] = largest[at - 1];
        if (at < MOST) largest[at] = k;
    }
    if (!n) return;
    double all = i->cfg->text_bytes ? (double)i->cfg->text_bytes : 1.0;
    fprintf(stderr, "%s: %s: not instrumented, however often it runs: %.1f %% of the code", tool_name(), i->name,
            100.0 * (double)bytes / all);
    for (size_t k = 0; k < n; k++) {
        const cfg_proc *p = &procs[largest[k]];
        char name[40];
        snprintf(name, sizeof name, "sub_%llx", (unsigned long long)p->addr);
        const char *reason = rewriter_reason(i, largest[k]);
        fprintf(stderr, "%s%s (%llu bytes: %s)", k ? ", " : "; the largest: ", p->name ? p->name : name,
                (unsigned long long)p->size, reason ? reason : "its code is not wholly known");
    }
    fputc('\n', stderr);
}
