/* An ELF file in memory that tells a debugger what code of Inlay's making is: symbols with the original procedures'
 * names, their lines, and how frames are walked over.
 *
 *     .text.N   no bytes: where the code lies. Code with a gap in between has sections of its own, so that the sections
 *               of one such file do not cover what another one describes
 *     .symtab   a function symbol for each piece of code
 *     .debug_*  a unit over all of it
 *
 * It is of type ET_EXEC: all addresses are those in the process, and nothing is relocated.
 */
#include "image/debug_out.h"

#include <elf.h>
#include <string.h>

enum { GAP = 1024 }; /* bytes between pieces of code that make another section */

typedef struct object {
    const debug_object *from;
    inl_bytes *out;
    size_t begin; /* of the file, in `out` */
    inl_bytes headers, names;
    uint32_t count; /* of sections */
    uint32_t strings;
} object;

static void add_section(object *o, const char *name, Elf64_Shdr h)
{
    h.sh_name = (uint32_t)o->names.size;
    inl_bytes_put(&o->names, name, strlen(name) + 1);
    inl_bytes_put(&o->headers, &h, sizeof h);
    o->count++;
}

static uint64_t offset_now(object *o)
{
    while ((o->out->size - o->begin) & 7) inl_bytes_number(o->out, 0, 1);
    return o->out->size - o->begin;
}

/* What has been appended since `at` is a section. */
static void end_section(object *o, const char *name, uint64_t at, Elf64_Shdr h)
{
    if (!h.sh_type) h.sh_type = SHT_PROGBITS;
    h.sh_offset = at;
    h.sh_size = o->out->size - o->begin - at;
    h.sh_addralign = 1;
    add_section(o, name, h);
}

static void add_bytes(object *o, const char *name, const inl_bytes *b, Elf64_Shdr h)
{
    uint64_t at = offset_now(o);
    inl_bytes_put(o->out, b->data, b->size);
    end_section(o, name, at, h);
}

/* --- where the code lies --- */

/* The pieces from `first` on that lie together; the index behind them. */
static size_t together(const debug_object *d, size_t first, uint64_t *low, uint64_t *high)
{
    size_t i = first;
    *low = d->code[first].addr;
    for (*high = *low; i < d->code_count && d->code[i].addr <= *high + GAP; i++)
        if (d->code[i].addr + d->code[i].size > *high) *high = d->code[i].addr + d->code[i].size;
    return i;
}

static void put_number(char *to, uint32_t n)
{
    char digits[12];
    unsigned k = 0;
    do digits[k++] = (char)('0' + n % 10);
    while (n /= 10);
    while (k) *to++ = digits[--k];
    *to = 0;
}

static void add_text(object *o, inl_bytes *ranges)
{
    const debug_object *d = o->from;
    char name[24] = ".text.";
    uint64_t low, high;
    for (size_t i = 0; i < d->code_count;) {
        i = together(d, i, &low, &high);
        put_number(name + 6, o->count);
        add_section(o, name,
                    (Elf64_Shdr){.sh_type = SHT_NOBITS,
                                 .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                                 .sh_addr = low,
                                 .sh_size = high - low,
                                 .sh_addralign = 1});
        inl_bytes_number(ranges, low, 8);
        inl_bytes_number(ranges, high, 8);
    }
    inl_bytes_number(ranges, 0, 8);
    inl_bytes_number(ranges, 0, 8);
}

static void add_symbols(object *o)
{
    const debug_object *d = o->from;
    inl_bytes strings = {0};
    uint64_t low, high, at = offset_now(o);
    uint16_t section = 1;
    inl_bytes_number(&strings, 0, 1);
    inl_bytes_reserve(o->out, sizeof(Elf64_Sym));
    for (size_t i = 0; i < d->code_count; section++) {
        for (size_t end = together(d, i, &low, &high); i < end; i++) {
            Elf64_Sym s = {.st_name = (uint32_t)strings.size,
                           .st_info = ELF64_ST_INFO(STB_LOCAL, STT_FUNC),
                           .st_shndx = section,
                           .st_value = d->code[i].addr,
                           .st_size = d->code[i].size};
            inl_bytes_put(&strings, d->code[i].name, strlen(d->code[i].name) + 1);
            inl_bytes_put(o->out, &s, sizeof s);
        }
    }
    end_section(o, ".symtab", at,
                (Elf64_Shdr){.sh_type = SHT_SYMTAB,
                             .sh_link = o->count + 1,
                             .sh_info = (uint32_t)d->code_count + 1,
                             .sh_entsize = sizeof(Elf64_Sym)});
    add_bytes(o, ".strtab", &strings, (Elf64_Shdr){.sh_type = SHT_STRTAB});
    if (strings.failed) o->out->failed = true;
    inl_bytes_free(&strings);
}

/* --- debug information --- */

static bool add_lines(object *o)
{
    const debug_object *d = o->from;
    debug_lines l = {0};
    for (size_t i = 0; i < d->row_count; i++) {
        if (d->rows[i].file) debug_lines_row(&l, &d->rows[i]);
        else debug_lines_end(&l, d->rows[i].addr);
    }
    if (!l.file_count) return false;
    uint64_t at = offset_now(o);
    if (!debug_lines_put(&l, o->out)) o->out->failed = true;
    end_section(o, ".debug_line", at, (Elf64_Shdr){0});
    return true;
}

static void add_unit(object *o, const inl_bytes *ranges)
{
    const debug_object *d = o->from;
    const debug_unit unit = {.name = d->name, .has_lines = add_lines(o)};
    uint64_t at = offset_now(o);
    debug_abbreviations_put(o->out, true);
    end_section(o, ".debug_abbrev", at, (Elf64_Shdr){0});
    add_bytes(o, ".debug_ranges", ranges, (Elf64_Shdr){0});
    at = offset_now(o);
    size_t begin = debug_unit_begin(o->out, &unit);
    for (size_t i = 0; i < d->code_count; i++)
        debug_unit_proc(o->out, d->code[i].name, d->code[i].addr, d->code[i].size);
    debug_unit_end(o->out, begin);
    end_section(o, ".debug_info", at, (Elf64_Shdr){0});
    if (d->frames) add_bytes(o, ".debug_frame", d->frames, (Elf64_Shdr){0});
    if (d->eh_frame_size)
        add_section(o, ".eh_frame",
                    (Elf64_Shdr){.sh_type = SHT_PROGBITS,
                                 .sh_flags = SHF_ALLOC,
                                 .sh_addr = d->eh_frame_addr,
                                 .sh_offset = d->eh_frame_at - o->begin,
                                 .sh_size = d->eh_frame_size,
                                 .sh_addralign = 1});
}

/* --- the file --- */

static void put_headers(object *o)
{
    uint64_t names_at = o->names.size;
    inl_bytes_put(&o->names, ".shstrtab", sizeof ".shstrtab");
    Elf64_Shdr names = {.sh_name = (uint32_t)names_at, .sh_type = SHT_STRTAB, .sh_addralign = 1};
    names.sh_offset = offset_now(o);
    names.sh_size = o->names.size;
    inl_bytes_put(o->out, o->names.data, o->names.size);
    uint64_t at = offset_now(o);
    inl_bytes_put(o->out, o->headers.data, o->headers.size);
    inl_bytes_put(o->out, &names, sizeof names);
    Elf64_Ehdr h = {.e_type = ET_EXEC,
                    .e_machine = o->from->machine,
                    .e_version = EV_CURRENT,
                    .e_shoff = at,
                    .e_ehsize = sizeof h,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = (uint16_t)(o->count + 1),
                    .e_shstrndx = (uint16_t)o->count};
    memcpy(h.e_ident, ELFMAG, SELFMAG);
    h.e_ident[EI_CLASS] = ELFCLASS64;
    h.e_ident[EI_DATA] = ELFDATA2LSB;
    h.e_ident[EI_VERSION] = EV_CURRENT;
    if (!o->out->failed) inl_bytes_set(o->out, o->begin, &h, sizeof h);
}

size_t debug_object_begin(inl_bytes *out) { return inl_bytes_reserve(out, sizeof(Elf64_Ehdr)); }

bool debug_object_end(const debug_object *d, size_t begin, inl_bytes *out)
{
    object o = {.from = d, .out = out, .begin = begin};
    inl_bytes ranges = {0};
    add_section(&o, "", (Elf64_Shdr){0});
    add_text(&o, &ranges);
    add_symbols(&o);
    add_unit(&o, &ranges);
    put_headers(&o);
    bool good = !out->failed && !ranges.failed && !o.headers.failed && !o.names.failed && o.count < SHN_LORESERVE;
    inl_bytes_free(&ranges);
    inl_bytes_free(&o.headers);
    inl_bytes_free(&o.names);
    return good;
}

bool debug_object_put(const debug_object *d, inl_bytes *out)
{
    return debug_object_end(d, debug_object_begin(out), out);
}
