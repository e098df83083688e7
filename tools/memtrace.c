/* memtrace: every memory access of the program: pc, address, size, read or write.
 *
 * Text, one line an access:      <pc> R|W <address> <size>[ x<iterations>]
 * Binary (--binary), 24 bytes:   pc (8), address (8), size (2), 1 = read 2 = write (1), 0 (1),
 *                                iterations (4); little-endian
 * Compact (--compact):           twelve bytes each, the number of a site and an address, and each site once, by which
 *                                the program runs half as long beyond its own time: docs/memtrace.md
 * Thinned (--hash):              the number of accesses and a hash of their sequence, by thread
 *
 * An instruction that reads and writes one operand gives a read and then a write. A string
 * instruction with a REP prefix gives one record an operand: the first address, the size of one
 * element and the iterations asked for, none when the count is zero. A masked operand (gather, scatter,
 * vmaskmov, maskmovdqu, AVX-512 under an opmask) gives one record for each element that the mask lets
 * through, from the lowest on, and none for the others. Threads write their records in chunks of
 * their own, each in order; a chunk in text form starts with a line "# thread N" when the thread
 * changes. */
#include <inlay.h>

#include "memtrace_sites.h"

#include <inttypes.h>
#include <string.h>

enum { CHUNK = 8192, COMPACT_CHUNK = 16384 };

typedef struct access {
    uint64_t pc, address;
    uint16_t size;
    uint8_t kind, zero;
    uint32_t iterations;
} access_record;
_Static_assert(sizeof(access_record) == 24, "the format on disk");

/* --compact: chunks of a thread's records, after the sites that are new. Where size or iterations are known only as the
 * program runs (the site says 0 bytes) they are in a record in front: of site 0, which is none, and instead of the
 * address the size in its upper half, the iterations in its lower. */
typedef struct compact_record {
    uint32_t site;
    uint64_t address;
} __attribute__((packed)) compact_record;
_Static_assert(sizeof(compact_record) == 12, "the format on disk");
typedef struct chunk_head {
    char magic[4];
    uint32_t thread, sites, records;
} chunk_head;
typedef struct site_line {
    uint64_t pc;
    uint16_t size;
    uint8_t kind, zero[5];
} site_line;
_Static_assert(sizeof(chunk_head) == 16 && sizeof(site_line) == 16, "the format on disk");

typedef struct hash_state {
    uint64_t count, hash;
} hash_state;

static bool binary, hash, compact;
static inlay_buffer *buffer;
static inlay_mutex lock;
static unsigned last_thread;
static uint64_t total;
static uint32_t told; /* sites that are in the output already */

/* --- what is inserted --- */

static inlay_expr compact_of(uint32_t number, inlay_expr address)
{
    return inlay_append(buffer, INLAY_FIELD(4, inlay_const(number)), INLAY_FIELD(8, address));
}

/* `varies`: size and iterations are known only as the program runs. */
static inlay_expr record_of(inlay_insn *insn, inlay_expr address, inlay_expr size, uint8_t kind, inlay_expr iterations,
                            uint16_t fixed, bool varies)
{
    if (!compact)
        return inlay_append(buffer, INLAY_FIELD(8, inlay_pc()), INLAY_FIELD(8, address), INLAY_FIELD(2, size),
                            INLAY_FIELD(2, inlay_const(kind)), INLAY_FIELD(4, iterations));
    uint32_t number = site_number(&(site){.pc = inlay_insn_address(insn), .size = varies ? 0 : fixed, .kind = kind});
    if (!number) {
        inlay_warn("too many places that access memory: one is left out");
        return NULL;
    }
    if (!varies) return compact_of(number, address);
    inlay_expr detail = inlay_binary(INLAY_OR, inlay_binary(INLAY_SHL, size, inlay_const(32)),
                                     inlay_binary(INLAY_AND, iterations, inlay_const(UINT32_MAX)));
    return inlay_sequence(compact_of(0, detail), compact_of(number, address));
}

static void add_elements(inlay_insn *insn, unsigned k, const inlay_memory *m, uint8_t kind)
{
    for (unsigned e = 0; e < m->elements; e++) {
        inlay_expr address = inlay_element_address(k, e), size = inlay_const(m->size);
        inlay_expr record = record_of(insn, address, size, kind, inlay_const(1), (uint16_t)m->size, false);
        if (record) inlay_insert(inlay_before(insn), inlay_if(inlay_element_active(k, e), record, NULL));
    }
}

static void add_access(inlay_insn *insn, unsigned k, const inlay_memory *m, uint8_t kind)
{
    if (m->masked) {
        add_elements(insn, k, m, kind);
        return;
    }
    inlay_expr size = m->size ? inlay_const(m->size) : inlay_access_size(k);
    inlay_expr iterations = m->repeated ? inlay_rep_count() : inlay_const(1);
    bool varies = m->repeated || !m->size;
    inlay_expr record = record_of(insn, inlay_effective_address(k), size, kind, iterations, (uint16_t)m->size, varies);
    if (!record) return;
    if (m->repeated) inlay_insert_predicated(inlay_before(insn), record);
    else inlay_insert(inlay_before(insn), record);
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    unsigned count = inlay_insn_memory_count(insn);
    for (unsigned k = 0; k < count; k++) {
        inlay_memory m = inlay_insn_memory(insn, k);
        if (m.prefetch) continue;
        if (m.read) add_access(insn, k, &m, SITE_READ);
        if (m.write) add_access(insn, k, &m, SITE_WRITE);
    }
}

/* --- what becomes of records --- */

static uint64_t mix(uint64_t h, const void *bytes, size_t size)
{
    for (size_t i = 0; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, (const char *)bytes + i, 8);
        h = (h ^ word) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    return h;
}

static void print_lines(const access_record *list, size_t count, unsigned thread)
{
    FILE *out = inlay_out();
    if (thread != last_thread) fprintf(out, "# thread %u\n", thread);
    last_thread = thread;
    for (size_t i = 0; i < count; i++) {
        const access_record *a = &list[i];
        fprintf(out, "%" PRIx64 " %c %" PRIx64 " %u", a->pc, a->kind == SITE_READ ? 'R' : 'W', a->address, a->size);
        if (a->iterations != 1) fprintf(out, " x%" PRIu32, a->iterations);
        fputc('\n', out);
    }
}

static void print_json_lines(const access_record *list, size_t count, unsigned thread)
{
    for (size_t i = 0; i < count; i++) {
        const access_record *a = &list[i];
        fprintf(inlay_out(),
                "{\"thread\":%u,\"pc\":%" PRIu64 ",\"kind\":\"%s\",\"address\":%" PRIu64
                ",\"size\":%u,\"iterations\":%" PRIu32 "}\n",
                thread, a->pc, a->kind == SITE_READ ? "read" : "write", a->address, a->size, a->iterations);
    }
}

static void write_compact(const void *records, size_t count, unsigned thread)
{
    uint32_t sites = sites_count();
    chunk_head head = {{'m', 't', 'r', '1'}, thread, sites - told, (uint32_t)count};
    inlay_write(&head, sizeof head);
    for (; told < sites; told++) {
        const site *s = site_at(told + 1);
        site_line line = {.pc = s->pc, .size = s->size, .kind = s->kind};
        inlay_write(&line, sizeof line);
    }
    inlay_write(records, count * sizeof(compact_record));
}

static void full(const void *records, size_t count, unsigned thread, void *arg)
{
    (void)arg;
    inlay_lock(&lock);
    total += count;
    if (hash) {
        hash_state *h = inlay_record(thread, sizeof *h);
        if (h) {
            h->hash = mix(h->hash, records, count * sizeof(access_record));
            h->count += count;
        }
    } else if (compact) {
        write_compact(records, count, thread);
    } else if (binary) {
        inlay_write(records, count * sizeof(access_record));
    } else if (inlay_format_is_json()) {
        print_json_lines(records, count, thread);
    } else {
        print_lines(records, count, thread);
    }
    inlay_unlock(&lock);
}

static void print_hash(uint64_t thread, void *record, void *arg)
{
    (void)arg;
    hash_state *h = record;
    if (inlay_format_is_json()) {
        inlay_json_begin(NULL, '{');
        inlay_json_uint("thread", thread);
        inlay_json_uint("accesses", h->count);
        inlay_json_uint("hash", h->hash);
        inlay_json_end();
    } else {
        fprintf(inlay_out(), "thread %" PRIu64 ": %" PRIu64 " accesses, hash %016" PRIx64 "\n", thread, h->count,
                h->hash);
    }
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    if (!hash) return;
    if (inlay_format_is_json()) {
        inlay_json_begin(NULL, '{');
        inlay_json_string("tool", "memtrace");
        inlay_json_string("program", inlay_program());
        inlay_json_uint("pid", (uint64_t)inlay_pid());
        inlay_json_uint("accesses", total);
        inlay_json_begin("threads", '[');
        inlay_records(print_hash, NULL);
        inlay_json_end();
        inlay_json_end();
    } else {
        inlay_records(print_hash, NULL);
    }
}

int main(int argc, char **argv)
{
    inlay_option_flag(&binary, "binary", 'b', "write 24-byte binary records (see docs)");
    inlay_option_flag(&compact, "compact", 'c', "write binary records of 12 bytes, and each site once (see docs)");
    inlay_option_flag(&hash, "hash", 0, "write only the count and a hash of the sequence by thread");
    inlay_init(&argc, &argv,
               "traces memory accesses (a REP-prefixed string instruction gives one record an "
               "operand, a masked vector operand one an element that is really accessed)");
    if (compact && (binary || hash)) inlay_option_refuse("--compact goes with neither --binary nor --hash");
    if (compact) buffer = inlay_buffer_new(sizeof(compact_record), COMPACT_CHUNK, full, NULL);
    else buffer = inlay_buffer_new(sizeof(access_record), CHUNK, full, NULL);
    if (compact && !sites_begin()) return 1;
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
