/* --dump: what became of a superblock, stage by stage, as text on Inlay's message channel.
 *
 *     decoded     its instructions, block by block
 *     snippets    the same with the snippets at their points
 *     lowered     the code made of them, disassembled, with each original instruction in front of its own
 *     bytes       that code in hexadecimal
 *
 * Made under the process's lock, when the fragment stands and before its exits are linked; a stage is written in
 * one piece, so that several processes do not mix.
 */
#include "base/log.h"
#include "base/sys.h"
#include "jit/core.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

typedef struct page { /* text that goes out when it is full or done */
    size_t n;
    char text[16 << 10];
} page;

static page out; /* under the process's lock */

static void flush(void)
{
    if (out.n) sys_call3(SYS_write, inl_log_fd, (long)out.text, (long)out.n);
    out.n = 0;
}

static void put(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void put(const char *fmt, ...)
{
    enum { LINE = 2048 };
    if (sizeof out.text - out.n < LINE) flush();
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(out.text + out.n, LINE, fmt, args);
    va_end(args);
    if (n > 0) out.n += n < LINE ? (size_t)n : LINE - 1;
}

static void put_insn(const char *margin, uint64_t at, const isa_insn *in)
{
    char text[128];
    jit.isa->format(in, text, sizeof text);
    put("%s%#12llx  %s", margin, (unsigned long long)at, text);
}

/* --- decoded, snippets --- */

static void put_list(const char *where, const weave_list *list)
{
    char text[1024];
    for (const weave_insert *n = list->first; n; n = n->next) {
        snippet_print(n->code, text, sizeof text);
        put("      %s%s: %s\n", where, n->predicated ? ", when it executes" : "", text);
    }
}

static void put_run(const weave_run *run, bool snippets)
{
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const weave_insn *insn = &run->insns[i];
        const weave_block *block = &run->blocks[insn->block];
        if (i == block->first) {
            put("  block %u%s\n", insn->block, block->head ? "" : " (goes on from a run that was cut)");
            if (snippets) put_list("anywhere", &block->anywhere);
        }
        if (snippets) put_list("before", &insn->before);
        put_insn("  ", insn->in.addr, &insn->in);
        put("%s\n", insn->elided ? "  (followed)" : "");
        if (!snippets) continue;
        put_list("taken", &insn->taken);
        put_list("after", &insn->after);
    }
}

/* --- lowered, bytes --- */

static const jit_exit *exit_at(const jit_fragment *f, uint64_t rel32)
{
    for (uint32_t i = 0; i < f->exit_count; i++)
        if (f->exec + f->exits[i].rel32_at == rel32) return &f->exits[i];
    return NULL;
}

static void put_code(const jit_fragment *f, const uint8_t *bytes, uint32_t from, uint32_t to)
{
    uint64_t start = f->exec - f->start_to_exec;
    while (from < to) {
        isa_insn in;
        isa_result r = jit.isa->decode(bytes + from, f->size - from, start + from, &in);
        if (r == ISA_TRUNCATED || r == ISA_INVALID) {
            put("      %#12llx  byte %#x\n", (unsigned long long)(start + from), bytes[from]);
            from++;
            continue;
        }
        put_insn("      ", start + from, &in);
        from += in.len;
        const jit_exit *e = exit_at(f, start + from - 4);
        if (e) put("  -> %#llx%s", (unsigned long long)e->target, e->continues ? " (goes on)" : "");
        put("\n");
    }
}

static void put_lowered(const jit_fragment *f, const weave_run *run, const weave_output *o, const uint8_t *bytes)
{
    if (f->start_to_exec) put("  landing\n");
    put_code(f, bytes, 0, f->start_to_exec);
    for (uint32_t i = 0; i < run->insn_count; i++) {
        put_insn("  ", run->insns[i].in.addr, &run->insns[i].in);
        put("\n");
        put_code(f, bytes, o->map[i].snippets_at, o->map[i + 1].snippets_at);
    }
    uint32_t end = o->map[run->insn_count].snippets_at;
    if (end < o->cold_at) put("  way out\n");
    put_code(f, bytes, end, o->cold_at);
    if (o->cold_at < f->size) put("  out of line\n");
    put_code(f, bytes, o->cold_at, f->size);
}

static void put_bytes(const jit_fragment *f, const uint8_t *bytes)
{
    enum { ROW = 16 };
    for (uint32_t at = 0; at < f->size; at += ROW) {
        put("  %#12llx ", (unsigned long long)(f->exec - f->start_to_exec + at));
        for (uint32_t i = at; i < at + ROW && i < f->size; i++) put(" %02x", bytes[i]);
        put("\n");
    }
}

static bool is_wanted(const weave_run *run)
{
    const jit_options *o = &jit.options;
    for (uint32_t i = 0; i < run->insn_count; i++) {
        const isa_insn *in = &run->insns[i].in;
        bool within = !o->dump_high || (in->addr < o->dump_high && in->addr + in->len > o->dump_low);
        if (within && (!o->dump_wanted || o->dump_wanted(in->addr))) return true;
    }
    return false;
}

void jit_dump(const jit_fragment *f, const weave_run *run, const weave_output *o)
{
    uint32_t stages = jit.options.dump;
    if (!is_wanted(run)) return;
    const uint8_t *bytes = jit_write_view(f->arena, f->exec - f->start_to_exec);
    unsigned long long app = f->app;
    if (stages & JIT_DUMP_DECODED) {
        put("%#llx decoded: %u instructions in %u blocks\n", app, run->insn_count, run->block_count);
        put_run(run, false);
    }
    flush();
    if (stages & JIT_DUMP_SNIPPETS) {
        put("%#llx with snippets\n", app);
        put_run(run, true);
    }
    flush();
    if (stages & JIT_DUMP_LOWERED) {
        put("%#llx lowered: %u bytes at %#llx\n", app, f->size, (unsigned long long)f->exec);
        put_lowered(f, run, o, bytes);
    }
    flush();
    if (stages & JIT_DUMP_BYTES) {
        put("%#llx bytes\n", app);
        put_bytes(f, bytes);
    }
    flush();
}
