/* What tools need besides counting, on tests/samples/abilities.c: the program's memory, data of each thread, atomic
 * addition, values of counters, names of what is there. Prints what it found. */
#include <inlay.h>

#include <inttypes.h>
#include <string.h>

enum { MEMORY, LOCAL, ATOMIC, VALUE, LATE, NAMES, LOCKS };
static const char *const hows[] = {"memory", "local", "atomic", "value", "late", "names", "locks", NULL};
static int how;

enum { MOST = 1 << 16 };
static struct found {
    uint64_t wrong, good, sum, words[4], seen[MOST], data, library;
    char names[2][64];
    inlay_counter blocks;
    inlay_proc *target;
} * found;
static inlay_local *counts, *large;
typedef struct big {
    uint64_t calls, rest[100000];
} big;

static void expect(bool good) { __atomic_fetch_add(good ? &found->good : &found->wrong, 1, __ATOMIC_RELAXED); }

/* --- memory --- */

static void looks(uint64_t text, uint64_t end, uint64_t nowhere)
{
    char out[16] = "xxxxxxxxxxxxxxx", cut[3];
    int value = 0;
    if (inlay_thread_number_now()) return; /* one thread writes */
    expect(inlay_memory_string(out, text, sizeof out) == 5 && !strcmp(out, "hello"));
    expect(inlay_memory_string(cut, text, sizeof cut) == 2 && !strcmp(cut, "he"));
    expect(inlay_memory_string(out, nowhere, sizeof out) == -1 && !out[0]);
    expect(inlay_memory_string(out, end, sizeof out) == -1);
    expect(inlay_memory_read(out, end, sizeof out) == 4 && !memcmp(out, "last", 4));
    expect(inlay_memory_read(out, nowhere, 1) == 0 && inlay_memory_write(nowhere, out, 1) == 0);
    expect(inlay_memory_write(text, "j", 1) == 0); /* read-only */
    expect(inlay_memory_write(end, "LAST!", 5) == 4);
    expect(inlay_memory_read(out, end, 4) == 4 && !memcmp(out, "LAST", 4));
    inlay_memory_write(end, "last", 4);
    uint64_t data = inlay_address_real(found->data);
    expect(inlay_address_shown(data) == found->data);
    expect(inlay_memory_read(&value, data, sizeof value) == sizeof value && (value == 7 || value == 9));
    value = 9;
    expect(inlay_memory_write(data, &value, sizeof value) == sizeof value);
    expect(inlay_memory_write((uint64_t)(uintptr_t)found, &value, sizeof value) == 0); /* Inlay's own */
}

/* --- data of threads --- */

static void counted(big *b, uint64_t *calls)
{
    b->calls++;
    b->rest[b->calls * 100]++;
    expect(inlay_local_now(counts) == calls && inlay_local_now(large) == b);
}

static void thread_starts(inlay_thread *t, void *arg)
{
    (void)arg;
    const big *b = inlay_local_of(large, t);
    expect(*(uint64_t *)inlay_local_of(counts, t) == 0 && b->calls == 0 && b->rest[100] == 0);
}

static void thread_ends(inlay_thread *t, void *arg)
{
    (void)arg;
    const big *b = inlay_local_of(large, t);
    expect(b->calls == 500 && b->rest[50000] == 1 && *(uint64_t *)inlay_local_of(counts, t) == 500 * 7);
    __atomic_fetch_add(&found->sum, b->calls, __ATOMIC_RELAXED);
}

/* --- names --- */

static void goes(uint64_t pc)
{
    const inlay_image *i = inlay_image_at(pc);
    const inlay_proc *p = inlay_proc_at(pc);
    if (!i || !p) return expect(false);
    found->library = inlay_image_is_instrumented(i) ? 1 : 2;
    snprintf(found->names[0], sizeof found->names[0], "%s", inlay_image_name(i));
    snprintf(found->names[1], sizeof found->names[1], "%s", inlay_proc_name(p));
}

static void check_sections(inlay_image *image)
{
    inlay_section text, bss, dynamic, none;
    expect(inlay_image_section_named(image, ".text", &text) && text.is_code && !text.is_writable && text.has_bytes);
    expect(inlay_image_section_named(image, ".bss", &bss) && bss.is_writable && !bss.is_code && !bss.has_bytes);
    expect(inlay_image_section_named(image, ".dynamic", &dynamic) && dynamic.size % 16 == 0);
    expect(!inlay_image_section_named(image, ".nowhere", &none));
    uint64_t main = inlay_image_symbol(image, "main"), entry = inlay_image_entry(image);
    expect(main - text.address < text.size && entry - text.address < text.size);
    expect(inlay_proc_at(entry) && !strcmp(inlay_proc_name(inlay_proc_at(entry)), "_start"));
}

typedef struct symbols {
    uint64_t last, data, count;
    bool in_order, target_is_code;
} symbols;

static void each_symbol(const inlay_symbol *s, void *arg)
{
    symbols *all = arg;
    all->in_order &= s->address >= all->last;
    all->last = s->address;
    all->count++;
    if (!strcmp(s->name, "data") && !s->is_code && s->is_global && s->size == sizeof(int)) all->data = s->address;
    if (!strcmp(s->name, "target") && s->is_code) all->target_is_code = inlay_proc_at(s->address) == found->target;
}

static void check_symbols(inlay_image *image)
{
    symbols all = {.in_order = true};
    unsigned count = inlay_image_symbols(image, each_symbol, &all);
    expect(all.in_order && count == all.count && count > 20);
    expect(all.target_is_code && all.data == inlay_image_symbol(image, "data"));
}

/* A variable of threads lies in a segment; nothing else in this procedure does. */
static void check_addresses(void)
{
    unsigned in_segment = 0, wrong = 0;
    for (inlay_block *b = inlay_proc_block_first(found->target); b; b = inlay_block_next(b))
        for (inlay_insn *i = inlay_block_first(b); i; i = inlay_insn_next(i))
            for (unsigned k = 0; k < inlay_insn_memory_count(i); k++) {
                int segment = inlay_insn_address_of(i, k).segment;
                in_segment += segment == INLAY_FS;
                wrong += segment != INLAY_FS && segment != -1;
            }
    expect(in_segment >= 1 && !wrong);
}

static void check_names(void)
{
    unsigned images = 0, libraries = 0;
    for (inlay_image *i = inlay_image_first(); i; i = inlay_image_next(i)) {
        images++;
        if (inlay_image_is_main(i)) check_sections(i);
        if (strncmp(inlay_image_name(i), "libc.so", 7)) continue;
        libraries++;
        expect(!inlay_image_wanted(i) || inlay_image_is_instrumented(i));
        expect(inlay_image_entry(i) != inlay_image_bias(i) && inlay_image_proc_named(i, "strlen"));
    }
    expect(images >= 2 && libraries == 1);
    expect(inlay_syscall_number("openat") > 0 && !strcmp(inlay_syscall_name(inlay_syscall_number("openat")), "openat"));
    expect(!inlay_syscall_name(-1) && !inlay_syscall_name(100000) && inlay_syscall_number("nothing") == -1);
}

/* --- */

static inlay_mutex guard;
static void guarded(void)
{
    inlay_lock(&guard);
    found->library++;
    inlay_unlock(&guard);
}

static void at_entry(inlay_point *entry)
{
    if (how == LOCKS) inlay_insert(entry, inlay_call(guarded));
    if (how == MEMORY) inlay_insert(entry, inlay_call(looks, inlay_argument(1), inlay_argument(2), inlay_argument(3)));
    if (how == LOCAL) {
        inlay_expr mine = inlay_local_address(counts);
        inlay_insert(entry, inlay_store(mine, inlay_binary(INLAY_ADD, inlay_load(mine, 8), inlay_const(7)), 8));
        inlay_insert(entry, inlay_call(counted, inlay_local_address(large), mine));
    }
    if (how != ATOMIC) return;
    for (unsigned k = 0; k < 4; k++)
        inlay_insert(entry,
                     inlay_atomic_add(inlay_pointer(&found->words[k]), inlay_const(0x1111111111111111), 1u << k));
    inlay_expr number = inlay_atomic_add(inlay_pointer(&found->sum), inlay_const(1), 2);
    inlay_expr place = inlay_binary(INLAY_ADD, inlay_pointer(found->seen),
                                    inlay_binary(INLAY_MUL, number, inlay_const(sizeof *found->seen)));
    inlay_insert(entry, inlay_atomic_add(place, inlay_argument(0), 8));
}

static void image_loaded(inlay_image *image, void *arg)
{
    (void)arg;
    if (!inlay_image_is_main(image)) return;
    found->target = inlay_image_proc_named(image, "target");
    if (how == NAMES) {
        check_sections(image);
        check_symbols(image);
        check_addresses();
    }
    found->data = inlay_image_symbol(image, "data");
    at_entry(inlay_proc_entry(found->target));
}

static void each_insn(inlay_insn *insn, void *arg)
{
    (void)arg;
    if (inlay_insn_proc(insn) == found->target && inlay_insn_is_call(insn) && inlay_insn_is_indirect(insn))
        inlay_insert(inlay_before(insn), inlay_call(goes, inlay_branch_target()));
}

/* The last value of the first thread's counter, behind its count. */
static void each_block(inlay_block *block, void *arg)
{
    (void)arg;
    static unsigned blocks;
    inlay_expr add = inlay_count(&found->blocks, 1);
    if (how == LATE && blocks++ < 20) {
        inlay_insert(inlay_block_entry(block), add);
        return;
    }
    inlay_expr store = inlay_store(inlay_pointer(&found->sum), inlay_counter_value(&found->blocks), 8);
    inlay_expr first = inlay_binary(INLAY_EQ, inlay_thread_id(), inlay_const(0));
    inlay_insert(inlay_block_entry(block), inlay_sequence(add, inlay_if(first, store, NULL)));
}

/* None has been reused for two threads, and what was added is all there. */
static void check_atomic(void)
{
    uint64_t all = 0;
    for (unsigned i = 0; i < 2500; i++) all += found->seen[i];
    expect(found->sum == 2500 && all == 5 * 499 * 500 / 2 && found->seen[2500] == 0);
    uint64_t ones = 0x1111111111111111;
    expect(found->words[0] == (uint8_t)(2500 * ones) && found->words[1] == (uint16_t)(2500 * ones));
    expect(found->words[2] == (uint32_t)(2500 * ones) && found->words[3] == 2500 * ones);
}

static void report(int status, void *arg)
{
    (void)status;
    (void)arg;
    if (how == ATOMIC) check_atomic();
    if (how == NAMES) check_names();
    if (how == LOCAL) expect(inlay_local_new(8) == NULL);
    if (how == VALUE) expect(found->sum && found->sum < inlay_counter_sum(&found->blocks));
    inlay_json_begin(NULL, '{');
    inlay_json_uint("wrong", found->wrong);
    inlay_json_uint("good", found->good);
    inlay_json_uint("sum", found->sum);
    inlay_json_uint("library", found->library);
    inlay_json_string("image", found->names[0]);
    inlay_json_string("procedure", found->names[1]);
    inlay_json_end();
}

int main(int argc, char **argv)
{
    inlay_option_choice(&how, hows, "how", "what to try");
    inlay_init(&argc, &argv, "tries what tools need");
    found = inlay_alloc(sizeof *found);
    inlay_on_image_load(image_loaded, NULL);
    if (how == NAMES) inlay_on_insn(each_insn, NULL);
    if (how == VALUE || how == LATE) inlay_on_block(each_block, NULL);
    if (how == LOCAL) {
        counts = inlay_local_new(sizeof(uint64_t));
        large = inlay_local_new(sizeof(big));
        inlay_on_thread_start(thread_starts, NULL);
        inlay_on_thread_end(thread_ends, NULL);
    }
    inlay_on_exit(report, NULL);
    return inlay_start();
}
