/* One object file: read, planned, made anew. */
#include "object/file.h"
#include "record/tells.h"

#include <stdlib.h>

void object_report_free(object_report *r)
{
    free(r->procs);
    free(r->strings);
    *r = (object_report){0};
}

static unsigned exits_of(const object_plan *p, uint32_t proc)
{
    const cfg_proc *k = &p->o->cfg->procs[proc];
    unsigned count = 0;
    bool conditional;
    for (uint32_t b = k->first_block; b < k->first_block + k->block_count; b++)
        count += object_block_leaves(p, b, &conditional);
    return count;
}

/* Names outlive the object. */
static bool report(const object_plan *p, object_report *out)
{
    const cfg_program *c = p->o->cfg;
    size_t size = 1, count = 0;
    for (uint32_t i = 0; i < c->proc_count; i++)
        if (object_was_asked(p, i)) size += strlen(c->procs[i].name) + 1, count++;
    out->procs = calloc(count + 1, sizeof *out->procs);
    char *at = out->strings = malloc(size);
    if (!out->procs || !at) return false;
    for (uint32_t i = 0; i < c->proc_count; i++) {
        const cfg_proc *k = &c->procs[i];
        if (!object_was_asked(p, i)) continue;
        object_proc *one = &out->procs[out->count++];
        *one = (object_proc){.name = at, .why = p->why[i], .size = k->size};
        at = stpcpy(at, k->name) + 1;
        if (!one->why && !p->entries) one->exits = exits_of(p, i);
        for (size_t n = 0; n < p->parts.count && !one->why && !p->entries; n++)
            if (p->parent[p->parts.items[n]] == i) one->exits += exits_of(p, p->parts.items[n]);
    }
    return true;
}

/* For the recorder in the same program or library; of several objects the first one's. */
static bool put_settings(object_file *o, const char *text)
{
    if (!text) return true;
    uint32_t section = object_add_section(o, ".rodata.inlay", SHT_PROGBITS, SHF_ALLOC, 1, 0);
    if (!section) return false;
    inl_bytes *b = &o->sections.items[section].data;
    inl_bytes_put(b, text, strlen(text) + 1);
    const Elf64_Sym symbol = {.st_info = ELF64_ST_INFO(STB_WEAK, STT_OBJECT), .st_size = strlen(text) + 1};
    return object_add_symbol(o, RECORD_DEFAULTS, symbol, section) && !b->failed;
}

static inl_status instrument(object_file *o, const object_options *options, object_report *r, inl_error *e)
{
    object_plan p = {0};
    object_stubs stubs = {0};
    inl_status st = object_link(o, e);
    if (!st) st = object_plan_make(o, options, &p, e);
    if (!st && !report(&p, r)) st = object_no_memory(o, e);
    if (!st) st = object_put_stubs(&p, &stubs, e);
    if (!st) st = object_put_frames(&p, &stubs, e);
    if (!st) st = object_put_lines(&p, &stubs, e);
    if (!st && stubs.count && !put_settings(o, options->settings)) st = object_no_memory(o, e);
    object_stubs_free(&stubs);
    object_plan_free(&p);
    return st;
}

inl_status object_instrument(const void *bytes, size_t size, const char *path, const object_options *options,
                             inl_bytes *out, object_report *r, inl_error *e)
{
    object_file o;
    *r = (object_report){0};
    inl_status st = object_read(&o, bytes, size, path, e);
    if (!st && o.symtab) st = instrument(&o, options, r, e);
    if (!st && o.symtab) st = object_write(&o, out, e);
    if (!st && !o.symtab) inl_bytes_put(out, bytes, size); /* nothing in it */
    object_free(&o);
    return st;
}
