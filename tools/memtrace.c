/* memtrace: every memory access of the program: pc, address, size, read or write.
 *
 * Text, one line an access:      <pc> R|W <address> <size>[ x<iterations>]
 * Binary (--binary), 24 bytes:   pc (8), address (8), size (2), 1 = read 2 = write (1), 0 (1),
 *                                iterations (4); little-endian
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

#include <inttypes.h>
#include <string.h>

enum { READ = 1, WRITE = 2, CHUNK = 8192 };

typedef struct access {
    uint64_t pc, address;
    uint16_t size;
    uint8_t kind, zero;
    uint32_t iterations;
} access_record;
_Static_assert(sizeof(access_record) == 24, "the format on disk");

typedef struct hash_state {
    uint64_t count, hash;
} hash_state;

static bool binary, hash;
static inlay_buffer *buffer;
static inlay_mutex lock;
static unsigned last_thread;
static uint64_t total;

static inlay_expr record_of(inlay_expr address, inlay_expr size, uint8_t kind, inlay_expr iterations)
{
    return inlay_append(buffer, INLAY_FIELD(8, inlay_pc()), INLAY_FIELD(8, address), INLAY_FIELD(2, size),
                        INLAY_FIELD(2, inlay_const(kind)), INLAY_FIELD(4, iterations));
}

static void add_elements(inlay_insn *insn, unsigned k, const inlay_memory *m, uint8_t kind)
{
    for (unsigned e = 0; e < m->elements; e++) {
        inlay_expr record = record_of(inlay_element_address(k, e), inlay_const(m->size), kind, inlay_const(1));
        inlay_insert(inlay_before(insn), inlay_if(inlay_element_active(k, e), record, NULL));
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
    inlay_expr record = record_of(inlay_effective_address(k), size, kind, iterations);
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
        if (m.read) add_access(insn, k, &m, READ);
        if (m.write) add_access(insn, k, &m, WRITE);
    }
}

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
        fprintf(out, "%" PRIx64 " %c %" PRIx64 " %u", a->pc, a->kind == READ ? 'R' : 'W', a->address, a->size);
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
                thread, a->pc, a->kind == READ ? "read" : "write", a->address, a->size, a->iterations);
    }
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
    inlay_option_flag(&hash, "hash", 0, "write only the count and a hash of the sequence by thread");
    inlay_init(&argc, &argv,
               "traces memory accesses (a REP-prefixed string instruction gives one record an "
               "operand, a masked vector operand one an element that is really accessed)");
    buffer = inlay_buffer_new(sizeof(access_record), CHUNK, full, NULL);
    inlay_on_insn(each_insn, NULL);
    inlay_on_exit(report, NULL);
    return inlay_start();
}
