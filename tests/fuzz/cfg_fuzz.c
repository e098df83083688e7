/* Feeds damaged ELF files to the whole-program analysis: `cfg_fuzz COUNT SEED FILE...`.
 *
 * Whatever comes in, what comes out keeps the promises of cfg/program.h: everything ascends, nothing
 * overlaps, indices are within bounds, and the instructions of a block in a procedure that is whole fill it
 * exactly. The same seed gives the same inputs; a failing one is left in cfg_fuzz.bad.
 */
#include "cfg/program.h"
#include "damage.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned long opened, analysed, whole, blocks;

static void check_block(const cfg_program *p, uint32_t number, bool is_whole)
{
    const cfg_block *b = &p->blocks[number];
    uint64_t at = b->addr, end = b->addr + b->size;
    unsigned count = 0;
    if (b->size == 0 || end < at) fuzz_fail("an empty block");
    if (number && at < p->blocks[number - 1].addr + p->blocks[number - 1].size && is_whole)
        fuzz_fail("overlapping blocks");
    if (number && at <= p->blocks[number - 1].addr) fuzz_fail("blocks out of order");
    if (cfg_block_at(p, at) != number) fuzz_fail("a block is not found by its address");
    if ((uint64_t)b->first_edge + b->edge_count > p->edge_count) fuzz_fail("edges out of bounds");
    for (uint32_t i = 0; i < b->edge_count; i++) {
        const cfg_edge *e = &p->edges[b->first_edge + i];
        if (e->from != number) fuzz_fail("an edge of another block");
        if (e->to != CFG_NONE && (e->to >= p->block_count || p->blocks[e->to].addr != e->target))
            fuzz_fail("an edge to nowhere");
        if (e->to == CFG_NONE && e->kind != CFG_EDGE_TAIL && is_whole) fuzz_fail("an open edge");
    }
    while (is_whole && at < end) {
        const uint8_t *bytes;
        isa_insn in;
        size_t have = image_bytes(p->image, at, &bytes);
        isa_result r = have ? p->isa->decode(bytes, have, at, &in) : ISA_INVALID;
        if (r != ISA_OK && r != ISA_UNKNOWN) fuzz_fail("a whole procedure with no instruction");
        at += in.len;
        count++;
    }
    if (is_whole && (at != end || count != b->insn_count)) fuzz_fail("instructions do not fill a block");
    blocks++;
}

static void check_proc(const cfg_program *p, uint32_t number)
{
    const cfg_proc *q = &p->procs[number];
    bool is_whole = q->status == CFG_PROC_WHOLE;
    if (number && q->addr < p->procs[number - 1].addr + p->procs[number - 1].size) fuzz_fail("overlapping procedures");
    if (is_whole != (q->reason == NULL)) fuzz_fail("a status without a reason");
    if (q->size == 0) fuzz_fail("an empty procedure");
    for (uint32_t i = 0; i < q->block_count; i++) {
        const cfg_block *b = &p->blocks[q->first_block + i];
        if (b->proc != number) fuzz_fail("a block of another procedure");
        if (b->addr < q->addr || b->addr - q->addr + b->size > q->size) fuzz_fail("a block outside");
        if (is_whole && b->flags & CFG_BLOCK_UNRESOLVED) fuzz_fail("whole, with an unknown jump");
        check_block(p, q->first_block + i, is_whole);
    }
    if (is_whole && (q->block_count == 0 || p->blocks[q->first_block].addr != q->addr))
        fuzz_fail("whole, without an entry");
    whole += is_whole;
}

static void check_tables(const cfg_program *p)
{
    for (uint32_t i = 0; i < p->table_count; i++) {
        const cfg_table *t = &p->tables[i];
        if (i && t->jump <= p->tables[i - 1].jump) fuzz_fail("tables out of order");
        if (t->count == 0 || t->block >= p->block_count) fuzz_fail("a table of nothing");
        if (cfg_table_at(p, t->jump) != t) fuzz_fail("a table is not found");
        if (p->procs[p->blocks[t->block].proc].status != CFG_PROC_WHOLE) continue;
        for (uint32_t k = 0; k < t->count; k++)
            if (cfg_block_at(p, cfg_table_target(p, t, k)) == CFG_NONE) fuzz_fail("a table to nowhere");
    }
}

static void check(const cfg_program *p)
{
    uint32_t next = 0;
    for (uint32_t i = 0; i < p->proc_count; i++) {
        if (p->procs[i].first_block != next) fuzz_fail("blocks between procedures");
        next += p->procs[i].block_count;
        check_proc(p, i);
    }
    if (next != p->block_count) fuzz_fail("blocks without a procedure");
    if (p->covered_bytes > p->text_bytes) fuzz_fail("more is covered than there is");
    check_tables(p);
    for (int i = 0; i < 20; i++) {
        uint64_t addr = fuzz_next() & 0xffffff;
        cfg_block_at(p, addr), cfg_block_covering(p, addr), cfg_proc_covering(p, addr);
    }
}

static void run_one(const fuzz_file *f, int fd, const char *path)
{
    static uint8_t bytes[FUZZ_FILE_SIZE];
    image *im;
    cfg_program *p;
    inl_error e = {0};
    size_t size = fuzz_damage(f, bytes);
    if (ftruncate(fd, 0) != 0 || pwrite(fd, bytes, size, 0) != (ssize_t)size) fuzz_fail("no room");
    if (image_open(path, &im, NULL)) return;
    opened++;
    if (cfg_program_analyse(im, NULL, &p, &e) == INL_OK) {
        analysed++;
        check(p);
        cfg_program_free(p);
    } else if (e.text[0] == 0) {
        fuzz_fail("an error without a text");
    }
    image_close(im);
}

int main(int argc, char **argv)
{
    static fuzz_file files[8];
    size_t count = 0;
    char path[64];
    if (argc < 4) return 2;
    unsigned long runs = strtoul(argv[1], NULL, 10);
    fuzz_begin("cfg_fuzz", strtoull(argv[2], NULL, 10));
    for (int i = 3; i < argc && count < 8; i++) fuzz_load(&files[count++], argv[i], true);
    int fd = memfd_create("cfg_fuzz", MFD_CLOEXEC);
    if (fd < 0) return 2;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    for (unsigned long i = 0; i < runs; i++) {
        alarm(20);
        run_one(&files[fuzz_below(count)], fd, path);
    }
    for (size_t i = 0; i < count; i++) free(files[i].bytes);
    printf("%lu inputs, %lu opened, %lu analysed, %lu whole procedures, %lu blocks\n", runs, opened, analysed, whole,
           blocks);
    return 0;
}
