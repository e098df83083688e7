/* An object laid out as if it had been linked, for the analysis, which reads programs:
 *
 *     headers | executable sections | dummies of undefined symbols | symbols and names | data | slots | no bytes
 *
 * at low addresses, of type ET_EXEC, so that every kind of relocation has room. A symbol that is not defined here gets
 * a dummy of 16 bytes, which returns, or does not where its name says so, or jumps where a thunk of that name would.
 * Where the value of a relocation is of no use to the analysis (threads' data) it stays 0. */
#include "base/search.h"
#include "cfg/program.h"
#include "object/file.h"

enum { BASE = 0x400000, DUMMY = 16, SLOT = 8, PAGE = 4096, MOST = 0x60000000 };

typedef struct layout {
    object_file *o;
    uint64_t at;      /* the next free address */
    uint64_t dummies; /* by symbol number, 16 bytes each */
    uint64_t slots;   /* likewise, 8 bytes each */
    uint64_t text_end, data, data_end, end;
} layout;

static bool lies(const object_section *s) { return s->h.sh_flags & SHF_ALLOC && s->h.sh_type != SHT_NULL; }

static uint64_t up(uint64_t at, uint64_t to) { return (at + to - 1) & ~(to - 1); }

enum pass { CODE, DATA, EMPTY };

static enum pass pass_of(const object_section *s)
{
    return s->h.sh_type == SHT_NOBITS ? EMPTY : s->h.sh_flags & SHF_EXECINSTR ? CODE : DATA;
}

/* A gap behind each, so that no address belongs to two. */
static bool place(layout *l, enum pass pass)
{
    for (size_t i = 1; i < l->o->sections.count; i++) {
        object_section *s = &l->o->sections.items[i];
        if (!lies(s) || pass_of(s) != pass) continue;
        s->at = up(l->at, s->h.sh_addralign > 16 ? s->h.sh_addralign : 16);
        l->at = s->at + (pass == EMPTY ? s->h.sh_size : s->data.size) + 16;
        if (l->at > MOST) l->at = MOST;
        if (l->at < MOST && !inl_vec_push(&l->o->laid_out, (uint32_t)i)) return false;
    }
    return true;
}

/* --- symbols --- */

static uint64_t symbol_address(const layout *l, uint32_t number)
{
    const object_symbol *s = &l->o->symbols.items[number];
    if (s->s.st_shndx == SHN_ABS) return s->s.st_value;
    if (!s->section) return l->dummies + (uint64_t)number * DUMMY;
    return l->o->sections.items[s->section].at + s->s.st_value;
}

static void put_dummies(const layout *l)
{
    object_file *o = l->o;
    uint8_t *to = o->linked.data + (l->dummies - BASE);
    for (size_t i = 0; i < o->symbols.count; i++) {
        const char *name = (const char *)o->strings.data + o->symbols.items[i].s.st_name;
        if (!o->isa->dummy_thunk(to + i * DUMMY, name)) o->isa->dummy(to + i * DUMMY, cfg_name_returns(name));
    }
}

static void put_slots(const layout *l)
{
    for (uint32_t i = 0; i < l->o->symbols.count; i++) {
        uint64_t addr = symbol_address(l, i);
        memcpy(l->o->linked.data + (l->slots - BASE) + (size_t)i * SLOT, &addr, SLOT);
    }
}

/* --- relocations --- */

static void relocate(const layout *l, const object_section *s, const Elf64_Rela *r)
{
    unsigned size;
    object_value how = l->o->isa->reloc(ELF64_R_TYPE(r->r_info), &size);
    uint32_t symbol = ELF64_R_SYM(r->r_info);
    if (how == OBJECT_NOTHING || how == OBJECT_UNKNOWN || how == OBJECT_THREAD) return;
    if (r->r_offset > s->data.size || size > s->data.size - r->r_offset) return;
    uint64_t value = how == OBJECT_SLOT ? l->slots + (uint64_t)symbol * SLOT : symbol_address(l, symbol);
    value += (uint64_t)r->r_addend;
    if (how != OBJECT_ABSOLUTE) value -= s->at + r->r_offset;
    memcpy(l->o->linked.data + (s->at - BASE) + r->r_offset, &value, size);
}

static void put_contents(const layout *l)
{
    for (size_t i = 1; i < l->o->sections.count; i++) {
        const object_section *s = &l->o->sections.items[i];
        if (!lies(s) || pass_of(s) == EMPTY || s->data.size == 0) continue;
        memcpy(l->o->linked.data + (s->at - BASE), s->data.data, s->data.size);
        for (size_t k = 0; k < s->relas.count; k++) relocate(l, s, &s->relas.items[k]);
    }
}

/* --- the image's tables --- */

typedef struct tables {
    inl_bytes symbols, names, headers;
    uint32_t count;
} tables;

static void add_header(tables *t, const char *name, Elf64_Shdr h)
{
    h.sh_name = (uint32_t)t->names.size;
    h.sh_offset = h.sh_addr ? h.sh_addr - BASE : h.sh_offset;
    inl_bytes_put(&t->names, name, strlen(name) + 1);
    inl_bytes_put(&t->headers, &h, sizeof h);
    t->count++;
}

/* Sections keep their numbers. */
static void put_headers(const layout *l, tables *t)
{
    for (size_t i = 0; i < l->o->sections.count; i++) {
        const object_section *s = &l->o->sections.items[i];
        Elf64_Shdr h = {.sh_type = SHT_NULL};
        if (i && lies(s)) {
            h = (Elf64_Shdr){.sh_type = s->h.sh_type,
                             .sh_flags = s->h.sh_flags,
                             .sh_addr = s->at,
                             .sh_size = pass_of(s) == EMPTY ? s->h.sh_size : s->data.size,
                             .sh_addralign = 1};
            if (h.sh_type != SHT_NOBITS) h.sh_type = SHT_PROGBITS;
        }
        add_header(t, s->name, h);
    }
    Elf64_Shdr dummies = {.sh_type = SHT_PROGBITS,
                          .sh_flags = SHF_ALLOC | SHF_EXECINSTR,
                          .sh_addr = l->dummies,
                          .sh_size = l->o->symbols.count * DUMMY,
                          .sh_addralign = 1};
    add_header(t, ".dummies", dummies);
}

/* What the header and symbols have no room for stands in the first section's header; symbols that lie in a section of a
 * higher number are told by their addresses alone. */
static uint16_t short_number(uint32_t section) { return section < SHN_LORESERVE ? (uint16_t)section : SHN_ABS; }

static void put_symbols(const layout *l, tables *t)
{
    inl_bytes_reserve(&t->symbols, sizeof(Elf64_Sym));
    for (uint32_t i = 1; i < l->o->symbols.count; i++) {
        Elf64_Sym s = l->o->symbols.items[i].s;
        unsigned type = ELF64_ST_TYPE(s.st_info);
        uint32_t section = l->o->symbols.items[i].section;
        if (s.st_shndx == SHN_UNDEF && s.st_name) {
            s.st_shndx = short_number((uint32_t)l->o->sections.count);
            s.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC);
            s.st_size = DUMMY;
        } else if ((s.st_shndx && !section) || type == STT_SECTION || type == STT_FILE || type == STT_TLS) {
            continue;
        } else {
            s.st_shndx = short_number(section);
        }
        s.st_value = symbol_address(l, i);
        inl_bytes_put(&t->symbols, &s, sizeof s);
    }
}

static Elf64_Phdr segment(uint32_t flags, uint64_t from, uint64_t file_end, uint64_t end)
{
    return (Elf64_Phdr){.p_type = PT_LOAD,
                        .p_flags = flags,
                        .p_offset = from - BASE,
                        .p_vaddr = from,
                        .p_paddr = from,
                        .p_filesz = file_end - from,
                        .p_memsz = end - from,
                        .p_align = PAGE};
}

static void put_front(layout *l, const tables *t, uint64_t headers_at)
{
    Elf64_Ehdr h = {.e_type = ET_EXEC,
                    .e_machine = l->o->view.header.e_machine,
                    .e_version = EV_CURRENT,
                    .e_phoff = sizeof h,
                    .e_ehsize = sizeof h,
                    .e_phentsize = sizeof(Elf64_Phdr),
                    .e_phnum = 2,
                    .e_shoff = headers_at,
                    .e_shentsize = sizeof(Elf64_Shdr),
                    .e_shnum = t->count < SHN_LORESERVE ? (uint16_t)t->count : 0,
                    .e_shstrndx = t->count < SHN_LORESERVE ? (uint16_t)(t->count - 2) : SHN_XINDEX};
    memcpy(h.e_ident, l->o->view.header.e_ident, EI_NIDENT);
    Elf64_Phdr p[2] = {segment(PF_R | PF_X, BASE, l->text_end, l->text_end),
                       segment(PF_R | PF_W, l->data, l->data_end, l->end)};
    inl_bytes_set(&l->o->linked, 0, &h, sizeof h);
    inl_bytes_set(&l->o->linked, sizeof h, p, sizeof p);
}

static bool put_tables(layout *l)
{
    tables t = {0};
    inl_bytes *b = &l->o->linked;
    put_headers(l, &t);
    put_symbols(l, &t);
    inl_bytes strings = l->o->strings;
    uint64_t strings_at = b->size;
    inl_bytes_put(b, strings.data, strings.size);
    inl_bytes_align(b, 8);
    Elf64_Shdr symbols = {.sh_type = SHT_SYMTAB,
                          .sh_offset = b->size,
                          .sh_size = t.symbols.size,
                          .sh_link = t.count + 2,
                          .sh_entsize = sizeof(Elf64_Sym),
                          .sh_info = 1};
    inl_bytes_put(b, t.symbols.data, t.symbols.size);
    add_header(&t, ".symtab", symbols);
    uint64_t names_at = b->size;
    Elf64_Shdr names = {.sh_type = SHT_STRTAB, .sh_offset = names_at, .sh_size = t.names.size + sizeof ".shstrtab"};
    add_header(&t, ".shstrtab", names);
    inl_bytes_put(b, t.names.data, t.names.size);
    inl_bytes_align(b, 8);
    Elf64_Shdr text = {.sh_type = SHT_STRTAB, .sh_offset = strings_at, .sh_size = strings.size};
    uint64_t headers_at = b->size;
    add_header(&t, "", text);
    Elf64_Shdr zero = {.sh_type = SHT_NULL, .sh_size = t.count, .sh_link = t.count - 2};
    if (t.count >= SHN_LORESERVE) inl_bytes_set(&t.headers, 0, &zero, sizeof zero);
    inl_bytes_put(b, t.headers.data, t.headers.size);
    put_front(l, &t, headers_at);
    bool good = !t.symbols.failed && !t.names.failed && !t.headers.failed && !b->failed;
    inl_bytes_free(&t.symbols);
    inl_bytes_free(&t.names);
    inl_bytes_free(&t.headers);
    return good;
}

/* The tables lie behind all bytes that are laid out; what has no bytes has addresses only, far behind them. */
static bool lay_out(layout *l)
{
    object_file *o = l->o;
    l->at = BASE + PAGE;
    bool good = place(l, CODE);
    l->dummies = up(l->at, 16);
    l->text_end = l->dummies + o->symbols.count * DUMMY;
    l->at = l->data = up(l->text_end, PAGE);
    good = place(l, DATA) && good;
    l->slots = up(l->at, 16);
    l->data_end = l->slots + o->symbols.count * SLOT;
    if (l->data_end >= MOST) return false;
    inl_bytes_reserve(&o->linked, l->data_end - BASE);
    if (o->linked.failed) return true;
    o->linked.addr = BASE;
    l->at = up(l->data_end + o->symbols.count * (sizeof(Elf64_Sym) + 1) + o->strings.size + o->sections.count * 512 +
                   (1 << 20),
               PAGE);
    o->linked.failed |= !place(l, EMPTY) || !good;
    l->end = l->at;
    return l->end < MOST;
}

inl_status object_link(object_file *o, inl_error *e)
{
    layout l = {.o = o};
    if (!lay_out(&l)) return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: too large (over 1.5 GB)", o->path);
    if (o->linked.failed) return object_no_memory(o, e);
    put_dummies(&l);
    put_slots(&l);
    put_contents(&l);
    if (!put_tables(&l)) return object_no_memory(o, e);
    inl_status st = image_open_memory(o->linked.data, o->linked.size, o->path, &o->im, e);
    return st ? st : cfg_program_analyse(o->im, &(cfg_options){0}, &o->cfg, e);
}

uint32_t object_section_at(const object_file *o, uint64_t addr, uint64_t *offset)
{
    size_t behind = INL_FIRST(o->laid_out.count, k, o->sections.items[o->laid_out.items[k]].at > addr);
    if (!behind) return 0;
    uint32_t number = o->laid_out.items[behind - 1];
    const object_section *s = &o->sections.items[number];
    uint64_t size = s->h.sh_type == SHT_NOBITS ? s->h.sh_size : s->data.size;
    if (addr > s->at + size) return 0;
    *offset = addr - s->at;
    return number;
}
