/* Walks all forms, reduces contexts and ModRM bytes to classes, writes the tables as C. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gen.h"

typedef uint16_t matrix[256][256]; /* [context][modrm] -> row */
typedef struct bytemap {
    uint8_t to[256];
} bytemap;
typedef struct block {
    uint32_t base, size;
} block;

static pool contexts = {.size = sizeof(bytemap)}, modrms = {.size = sizeof(bytemap)};
static lists cells = {.size = sizeof(uint16_t)};
static block blocks[X86_MAPS * 256];
static unsigned block_count;
static x86_opcode opcodes[X86_MAPS][256];
static uint16_t op_syscall, op_int;

static bool is_prefix(int map, int opcode)
{
    static const uint8_t bytes[] = {0x0f, 0x26, 0x2e, 0x36, 0x3e, 0x62, 0x64, 0x65,
                                    0x66, 0x67, 0xc4, 0xc5, 0xd5, 0xf0, 0xf2, 0xf3};
    if (map == X86_MAP_LEGACY) return (opcode & 0xf0) == 0x40 || memchr(bytes, opcode, sizeof bytes) != NULL;
    return map == X86_MAP_LEGACY + 1 && (opcode == 0x0f || opcode == 0x38 || opcode == 0x3a);
}

static unsigned context_limit(int map)
{
    if (map <= X86_MAP_LEGACY + 3) return 128;
    if (map == X86_MAP_3DNOW) return 1;
    return map > X86_MAP_EVEX ? 256 : 16;
}

static bool right_encoding(const answer *a)
{
    if (a->form.map > X86_MAP_EVEX) return a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_EVEX;
    if (a->form.map >= X86_MAP_XOP) return a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_XOP;
    if (a->form.map > X86_MAP_VEX) return a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_VEX;
    if (a->form.map == X86_MAP_3DNOW) return a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_3DNOW;
    return a->in.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
}

/* Has the opcode a ModRM byte? In the newer maps all but one have. */
static bool has_modrm(int map, int opcode)
{
    if (map == X86_MAP_VEX + 1 && opcode == 0x77) return false;
    if (map >= X86_MAP_LEGACY + 2) return true;
    for (int context = 0; context < 8; context++) {
        for (int modrm = 0; modrm < 256; modrm += context ? 8 : 1) {
            answer a;
            probe(&a, (form){map, opcode, context, modrm});
            if (ZYAN_SUCCESS(a.status) && right_encoding(&a)) return a.in.attributes & ZYDIS_ATTRIB_HAS_MODRM;
        }
    }
    return false;
}

/* Moves to control and debug registers take mod for 3 whatever it is. */
static bool register_only(int map, int opcode)
{
    answer a;
    probe(&a, (form){map, opcode, 0, 0x40});
    return map <= X86_MAP_LEGACY + 3 && ZYAN_SUCCESS(a.status) && right_encoding(&a) && !a.in.raw.disp.size;
}

static uint16_t cell_of(form f, bool modrm)
{
    answer a;
    probe(&a, f);
    if (ZYAN_SUCCESS(a.status) && right_encoding(&a)) {
        uint16_t row = row_of(&a);
        const x86_row *r = pool_at(&gen_rows, row);
        if (a.in.mnemonic == ZYDIS_MNEMONIC_SYSCALL) op_syscall = r->op;
        if (a.in.mnemonic == ZYDIS_MNEMONIC_INT) op_int = r->op;
        return row;
    }
    return a.status == ZYDIS_STATUS_DECODING_ERROR && modrm && f.map != X86_MAP_LEGACY ? X86_ROW_UNKNOWN
                                                                                       : X86_ROW_INVALID;
}

/* EVEX opcodes that no context knows are many; a coarse look skips them. */
static bool evex_exists(int map, int opcode)
{
    for (int context = 0; context < 256; context++) {
        if (context & 0x60) continue;
        for (int i = 0; i < 16; i++) {
            answer a;
            probe(&a, (form){map, opcode, context, (i & 8 ? 0xc0 : 0x04) | (i & 7) << 3});
            if (ZYAN_SUCCESS(a.status)) return true;
        }
    }
    return false;
}

/* The ModRM byte that stands for this one: EVEX forms differ by mod, reg and the need of a SIB. */
static int representative(int map, int modrm)
{
    if (map <= X86_MAP_EVEX) return modrm;
    return modrm >= 0xc0 ? modrm & 0xf8 : (modrm & 0x38) | ((modrm & 7) == 4 ? 4 : 0);
}

static void fill(matrix m, int map, int opcode, bool modrm)
{
    unsigned limit = context_limit(map);
    for (unsigned c = 0; c < 256; c++) {
        if (c >= limit) {
            memcpy(m[c], m[c % limit], sizeof m[c]);
            continue;
        }
        if (modrm && map <= X86_MAP_LEGACY + 3 && c & X86_CTX_B) {
            memcpy(m[c], m[c & ~X86_CTX_B], sizeof m[c]);
            continue;
        }
        for (int b = 0; b < 256; b++) {
            int r = modrm ? representative(map, b) : 0;
            m[c][b] = r < b ? m[c][r] : cell_of((form){map, opcode, c, b}, modrm);
        }
    }
}

static unsigned row_classes(const matrix m, bytemap *map, uint8_t first[256])
{
    unsigned n = 0;
    for (unsigned c = 0; c < 256; c++) {
        unsigned k = 0;
        while (k < n && memcmp(m[c], m[first[k]], sizeof m[c])) k++;
        if (k == n) first[n++] = c;
        map->to[c] = k;
    }
    return n;
}

static unsigned column_classes(const matrix m, bytemap *map, uint8_t first[256])
{
    static matrix turned;
    for (unsigned c = 0; c < 256; c++)
        for (unsigned b = 0; b < 256; b++) turned[b][c] = m[c][b];
    return row_classes(turned, map, first);
}

static uint32_t add_block(const uint16_t *data, uint32_t size)
{
    for (unsigned i = 0; i < block_count; i++)
        if (blocks[i].size == size && !memcmp(cells.data + blocks[i].base * sizeof *data, data, size * sizeof *data))
            return blocks[i].base;
    size_t room = cells.count + size;
    cells.data = realloc(cells.data, room * sizeof *data);
    if (!cells.data) {
        perror("gen");
        exit(1);
    }
    memcpy(cells.data + cells.count * sizeof *data, data, size * sizeof *data);
    blocks[block_count++] = (block){cells.count, size};
    cells.count = room;
    return blocks[block_count - 1].base;
}

static void add_opcode(matrix m, int map, int opcode, bool modrm)
{
    static uint16_t data[256 * 256];
    bytemap cmap, mmap;
    uint8_t crow[256], mcol[256];
    unsigned nc = row_classes(m, &cmap, crow), nm = column_classes(m, &mmap, mcol);
    unsigned shift = 0;
    while (1u << shift < nm) shift++;
    for (unsigned c = 0; c < nc; c++)
        for (unsigned b = 0; b < 1u << shift; b++) data[c << shift | b] = b < nm ? m[crow[c]][mcol[b]] : 0;
    size_t ci = pool_add(&contexts, &cmap), mi = pool_add(&modrms, &mmap);
    if (ci > X86_OPCODE_CONTEXT || mi > 255) {
        fprintf(stderr, "gen: opcode %x of map %d does not fit the tables\n", opcode, map);
        exit(1);
    }
    opcodes[map][opcode] = (x86_opcode){add_block(data, nc << shift),
                                        ci | (modrm ? X86_OPCODE_MODRM : 0) |
                                            (modrm && register_only(map, opcode) ? X86_OPCODE_REGISTER : 0),
                                        mi, shift};
}

static void walk(void)
{
    static matrix m;
    for (int map = 0; map < X86_MAPS; map++) {
        for (int opcode = 0; opcode < 256; opcode++) {
            bool known = map != X86_MAP_EVEX + 4;
            bool prefix = is_prefix(map, opcode), modrm = !prefix && has_modrm(map, opcode);
            if (map > X86_MAP_EVEX) known = known && evex_exists(map, opcode);
            if (known && !prefix) fill(m, map, opcode, modrm);
            else
                for (int i = 0; i < 256 * 256; i++)
                    m[i / 256][i % 256] = prefix || map == X86_MAP_LEGACY ? X86_ROW_INVALID : X86_ROW_UNKNOWN;
            add_opcode(m, map, opcode, modrm);
        }
    }
}

static void write_cells(FILE *f)
{
    const uint16_t *data = (const uint16_t *)cells.data;
    fprintf(f, "const uint16_t x86_cells[] = {");
    for (size_t i = 0; i < cells.count; i++) fprintf(f, "%s%u,", i % 24 ? "" : "\n", data[i]);
    fprintf(f, "\n};\n");
}

static void write_bytemaps(FILE *f, const char *name, const pool *p)
{
    fprintf(f, "const uint8_t %s[][256] = {\n", name);
    for (size_t i = 0; i < p->count; i++) {
        const bytemap *b = pool_at(p, i);
        fputc('{', f);
        for (int k = 0; k < 256; k++) fprintf(f, "%u,", b->to[k]);
        fprintf(f, "},\n");
    }
    fprintf(f, "};\n");
}

static void write_opcodes(FILE *f)
{
    fprintf(f, "const x86_opcode x86_opcodes[X86_MAPS][256] = {\n");
    for (int m = 0; m < X86_MAPS; m++) {
        fprintf(f, "{");
        for (int i = 0; i < 256; i++) {
            const x86_opcode *o = &opcodes[m][i];
            fprintf(f, "{%u,%u,%u,%u},%s", o->cells, o->context, o->modrm, o->shift, i % 8 == 7 ? "\n" : "");
        }
        fprintf(f, "},\n");
    }
    fprintf(f, "};\n");
}

static void write_rows(FILE *f)
{
    fprintf(f, "_Alignas(64) const x86_row x86_rows[] = {\n");
    for (size_t i = 0; i < gen_rows.count; i++) {
        const x86_row *r = pool_at(&gen_rows, i);
        const op_name *n = pool_at(&gen_ops, r->op);
        fprintf(f, "{%u,%u,%u,%u,%u,%u,%u,%u,%u,%u,%u}, /* %s */\n", r->op, r->disp_shift, r->check, r->form, r->flow,
                r->bits, r->imm, r->cond, r->fx, r->mem, r->operands, n->mnemonic);
    }
    fprintf(f, "};\nconst x86_check x86_checks[] = {\n");
    for (size_t i = 0; i < gen_checks.count; i++) {
        const x86_check *c = pool_at(&gen_checks, i);
        fprintf(f, "{0x%xu,0x%xu,0x%xu,%u},\n", c->reg, c->rm, c->vvvv, c->differ);
    }
    fprintf(f, "};\n");
}

static void write_fxs(FILE *f)
{
    fprintf(f, "const x86_vec_set x86_vec_sets[] = {\n");
    for (size_t i = 0; i < gen_vec_sets.count; i++) {
        const x86_vec_set *v = pool_at(&gen_vec_sets, i);
        fprintf(f, "{0x%xu,0x%xu,0x%xu},\n", v->reads, v->writes, v->kills);
    }
    fprintf(f, "};\n_Alignas(64) const x86_fx x86_fxs[] = {\n");
    for (size_t i = 0; i < gen_fxs.count; i++) {
        const x86_fx *x = pool_at(&gen_fxs, i);
        fprintf(f,
                "{0x%llxu,0x%llxu,0x%llxu,0x%llxu,%u,%u,%u,%u,%u,%u,%u,%u,%u,{%u,%u,%u},{%u,%u,%u},"
                "%u,%u,%u},\n",
                (unsigned long long)x->fixed, (unsigned long long)x->reg, (unsigned long long)x->rm,
                (unsigned long long)x->v, x->flags_read, x->flags_written, x->flags_undefined, x->flags_kill, x->quirks,
                x->other_reads, x->other_writes, x->has_vec, x->rare, x->vec.read, x->vec.write, x->vec.kill,
                x->mask.read, x->mask.write, x->mask.kill, x->mask_writes, x->mask_reads, x->vec_fixed);
    }
    fprintf(f, "};\n");
}

static void write_lists(FILE *f)
{
    fprintf(f, "const x86_mem x86_mems[] = {\n");
    for (size_t i = 0; i < gen_mems.count; i++) {
        const x86_mem *m = (const x86_mem *)gen_mems.data + i;
        fprintf(f, "{%u,%u,%u,%u,%u,%u,%u,%d,%u,%u,%u,%u,%u,%u},\n", m->place, m->base, m->access, m->flags, m->bits,
                m->size, m->count, m->disp, m->mask, m->mask_slot, m->element, m->elements, m->lanes, m->index_size);
    }
    fprintf(f, "};\nconst x86_operand x86_operands[] = {\n");
    for (size_t i = 0; i < gen_operands.count; i++) {
        const x86_operand *o = (const x86_operand *)gen_operands.data + i;
        fprintf(f, "{%u,%u,%u,%u,%u,%u,%u,%u},\n", o->kind, o->slot, o->class, o->number, o->access, o->flags, o->size,
                o->broadcast);
    }
    fprintf(f, "};\n");
}

static void write_names(FILE *f)
{
    fprintf(f, "const char *const x86_mnemonics[] = {\n");
    for (size_t i = 0; i < gen_ops.count; i++)
        fprintf(f, "\"%s\",\n", ((const op_name *)pool_at(&gen_ops, i))->mnemonic);
    fprintf(f, "};\nconst char *const x86_categories[] = {\n");
    for (size_t i = 0; i < gen_ops.count; i++)
        fprintf(f, "\"%s\",\n", ((const op_name *)pool_at(&gen_ops, i))->category);
    fprintf(f, "};\n");
}

static void write_header(FILE *f)
{
    fprintf(f,
            "/* Written by the table generator. */\n#ifndef INL_ISA_X86_TABLES_H\n"
            "#define INL_ISA_X86_TABLES_H\n"
            "enum { X86_OP_COUNT = %zu, X86_OP_SYSCALL = %u, X86_OP_INT = %u };\n#endif\n",
            gen_ops.count, op_syscall, op_int);
}

int main(int argc, char **argv)
{
    FILE *f = argc == 3 ? fopen(argv[1], "w") : NULL, *h = f ? fopen(argv[2], "w") : NULL;
    if (!h) {
        fprintf(stderr, "usage: %s TABLES.c TABLES.h\n", argv[0]);
        return 2;
    }
    probe_init();
    rows_init();
    walk();
    fprintf(f, "/* Written by the table generator. */\n#include \"isa/x86_64/tables.h\"\n");
    write_opcodes(f);
    write_bytemaps(f, "x86_context_maps", &contexts);
    write_bytemaps(f, "x86_modrm_maps", &modrms);
    write_cells(f);
    write_rows(f);
    write_fxs(f);
    write_lists(f);
    write_names(f);
    write_header(h);
    return (fclose(f) | fclose(h)) != 0;
}
