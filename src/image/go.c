/* Programs of Go: how they are known, and their table of procedures, which stripping leaves (.gopclntab, or, where
 * sections are stripped too, what begins as it does). Numbers are of the file's order of bytes.
 *
 *     magic, 0, 0, smallest instruction, size of a pointer | count | ...              version
 *     1.18 on   count, files, text, names, units, files, lines, table;  u32 entry - text, u32 at    (f0, f1)
 *     1.26 on   text is 0: it stands in the description of the module, which leads to all parts of the table
 *     1.16      count, files,       names, units, files, lines, table;  u64 entry,        u64 at    (fa)
 *     1.2       count, table;                                           u64 entry,        u64 at    (fb)
 *
 * What `table + at` holds of a procedure begins with its entry again; then, of 4 bytes each, the place of its name,
 * signed, the size of its arguments, and (since 1.12) how far behind the entry it goes on after a recovery, or 0.
 * The table's last entry has the end alone. */
#include "image/file.h"

#include <string.h>

typedef struct go_table {
    const uint8_t *bytes;
    size_t size;
    uint64_t addr;
    uint64_t count, text, names, table; /* `names` and `table` count from the begin */
    unsigned word;                      /* bytes of a number in the table: 4 or 8 */
} go_table;

static bool is_table(uint64_t word)
{
    uint32_t magic = (uint32_t)word;
    return word >> 32 == 0x08010000 && (magic == 0xfffffffb || (magic >= 0xfffffff0 && magic <= 0xfffffffa));
}

static uint64_t number(const go_table *t, uint64_t at, unsigned size)
{
    uint64_t n = 0;
    if (at <= t->size && size <= t->size - at) memcpy(&n, t->bytes + at, size);
    return n;
}

static bool begins_table(image *im, uint64_t addr, go_table *t)
{
    *t = (go_table){.addr = addr};
    t->size = image_bytes(im, addr, &t->bytes);
    return is_table(number(t, 0, 8));
}

static bool scan(image *im, go_table *t)
{
    const image_segment *segments;
    const uint8_t *bytes;
    size_t n = image_segments(im, &segments);
    for (size_t i = 0; i < n; i++) {
        size_t size = image_bytes(im, segments[i].addr, &bytes);
        for (size_t at = -segments[i].addr & 7; at + 8 <= size; at += 8) {
            uint64_t word;
            memcpy(&word, bytes + at, sizeof word);
            if (is_table(word)) return begins_table(im, segments[i].addr + at, t);
        }
    }
    return false;
}

/* A section for the table, also one whose form is of a Go nobody here knows. */
static bool is_for_table(const image_section *s)
{
    static const char name[] = ".gopclntab";
    size_t length = strlen(s->name);
    return length >= sizeof name - 1 && !strcmp(s->name + length - (sizeof name - 1), name);
}

static bool find(image *im, go_table *t)
{
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (is_for_table(&s[i]) && begins_table(im, s[i].addr, t)) return true;
    return count == 0 && scan(im, t);
}

bool image_is_go(image *im)
{
    go_table t;
    const image_section *s;
    size_t count = image_sections(im, &s);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(s[i].name, ".note.go.buildid") || is_for_table(&s[i])) return true;
    return find(im, &t);
}

/* --- the module --- */

/* A description of the module begins with the table's address; where it has those of its names, its list and the text.
 */
enum { OF_NAMES = 8, OF_LIST = 128, OF_TEXT = 176 };

/* 0: none stands there. */
static uint64_t text_of_module(image *im, const go_table *t, uint64_t at)
{
    if (image_word_at(im, at + OF_NAMES) != t->addr + t->names) return 0;
    if (image_word_at(im, at + OF_LIST) != t->addr + t->table) return 0;
    uint64_t text = image_word_at(im, at + OF_TEXT);
    return image_executable(im, text, NULL) ? text : 0;
}

static uint64_t text_by_relocation(image *im, const go_table *t)
{
    const image_reloc *r;
    size_t count = image_relocs(im, &r);
    uint64_t text = 0;
    for (size_t i = 0; i < count && !text; i++)
        if (r[i].value == t->addr) text = text_of_module(im, t, r[i].offset);
    return text;
}

static uint64_t find_text(image *im, const go_table *t)
{
    const image_segment *segments;
    const uint8_t *bytes;
    size_t n = image_segments(im, &segments);
    uint64_t text = text_by_relocation(im, t);
    for (size_t i = 0; i < n && !text; i++) {
        size_t size = image_bytes(im, segments[i].addr, &bytes);
        for (size_t at = -segments[i].addr & 7; at + 8 <= size && !text; at += 8)
            if (memcmp(bytes + at, &t->addr, 8) == 0) text = text_of_module(im, t, segments[i].addr + at);
    }
    return text;
}

/* --- procedures --- */

static bool read_head(image *im, go_table *t)
{
    uint32_t magic = (uint32_t)number(t, 0, 4);
    bool late = magic == 0xfffffff0 || magic == 0xfffffff1;
    if (!late && magic != 0xfffffffa && magic != 0xfffffffb) return false;
    t->word = late ? 4 : 8;
    t->count = number(t, 8, 8);
    t->text = late ? image_word_at(im, t->addr + 24) : 0;
    t->names = magic == 0xfffffffb ? 0 : number(t, late ? 32 : 24, 8);
    t->table = magic == 0xfffffffb ? 16 : number(t, late ? 64 : 56, 8);
    if (late && !t->text) t->text = find_text(im, t);
    return t->names < t->size && t->table < t->size && t->count < (t->size - t->table) / (2 * t->word);
}

static uint64_t entry_of(const go_table *t, uint64_t i)
{
    return t->text + number(t, t->table + 2 * t->word * i, t->word);
}

static uint64_t description_of(const go_table *t, uint64_t i)
{
    uint64_t base = t->table == 16 ? 0 : t->table;
    return base + number(t, t->table + 2 * t->word * i + t->word, t->word);
}

/* NULL: there is none, or it has no end. */
static const char *name_of(const go_table *t, uint64_t i)
{
    uint64_t at = description_of(t, i);
    uint64_t name = t->names + number(t, at + t->word, 4);
    if (at >= t->size || name >= t->size || !t->bytes[name]) return NULL;
    return memchr(t->bytes + name, 0, t->size - name) ? (const char *)t->bytes + name : NULL;
}

void image_add_go(image *im)
{
    go_table t;
    if (!find(im, &t) || !read_head(im, &t) || !inl_vec_reserve(&im->symbols, im->symbols.count + t.count)) return;
    for (uint64_t i = 0; i < t.count; i++) {
        uint64_t addr = entry_of(&t, i), next = entry_of(&t, i + 1), segment;
        const char *name = name_of(&t, i);
        if (!name || next <= addr || !image_executable(im, addr, &segment) || next > segment) continue;
        image_sym s = {.name = name, .addr = addr, .size = next - addr, .source = IMAGE_PROC_TABLE};
        s.kind = IMAGE_SYMBOL_FUNC;
        inl_vec_push(&im->symbols, s);
    }
}

void image_go_recoveries(image *im, void (*each)(void *arg, uint64_t addr), void *arg)
{
    go_table t;
    if (!find(im, &t) || !read_head(im, &t)) return;
    for (uint64_t i = 0; i < t.count; i++) {
        uint64_t behind = number(&t, description_of(&t, i) + t.word + 8, 4), entry = entry_of(&t, i);
        if (behind && entry_of(&t, i + 1) > entry && behind < entry_of(&t, i + 1) - entry) each(arg, entry + behind);
    }
}
