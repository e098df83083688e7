/* The table generator: a program of the build, never linked into Inlay.
 *
 *     probe.c   synthesises the bytes of one form and asks Zydis about them
 *     rows.c    turns an answer into a row: flow, sizes, immediates, register checks
 *     fx.c      ... into its registers, flags and other state
 *     lists.c   ... into its memory and operand lists
 *     pool.c    stores equal things once
 *     category.c names instruction classes
 *     main.c    walks all forms, finds the classes, writes the tables
 */
#ifndef INL_ISA_X86_64_GEN_H
#define INL_ISA_X86_64_GEN_H

#include <Zydis/Zydis.h>
#include "isa/x86_64/tables.h"

/* One form: what the decoder's tables are indexed with. */
typedef struct form {
    int map, opcode, context, modrm;
} form;

/* Register fields that the form leaves open; low three bits of reg and rm are the ModRM byte's. */
typedef struct fields {
    uint8_t reg, rm, vvvv, index;
} fields;

typedef struct answer {
    ZyanStatus status;
    form form;
    fields fields;
    ZydisDecodedInstruction in;
    ZydisDecoderContext context;
    ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT]; /* after probe_operands */
} answer;

bool form_is_vector(const form *); /* VEX, XOP or EVEX */
bool form_is_evex(const form *);
bool form_is_memory(const form *); /* ModRM names memory */
void probe_init(void);
void probe_with(answer *, form, fields); /* exactly these fields */
void probe(answer *, form);              /* fields chosen so that the form is valid, if it can be */
void probe_operands(answer *);

typedef struct pool {
    size_t size, count, room;
    uint8_t *data;
    uint32_t *slots, slot_count;
} pool;
size_t pool_add(pool *, const void *item); /* index; equal items share one */
void *pool_at(const pool *, size_t i);

/* Variable-length lists, each ended by the caller's own mark, stored once. */
typedef struct lists {
    uint8_t *data;
    size_t size, count, room;
} lists;
size_t lists_add(lists *, const void *items, size_t n);

extern pool gen_ops, gen_rows, gen_checks, gen_fxs, gen_vec_sets;
extern lists gen_mems, gen_operands;
typedef struct op_name {
    const char *mnemonic, *category;
} op_name;

void rows_init(void);
uint16_t row_of(answer *); /* row number of a valid answer */
const char *category_of(const answer *);
void fx_of(const answer *, unsigned flow, x86_fx *);
size_t mems_of(const answer *, bool *touches);
unsigned slot_of(ZydisOperandEncoding); /* X86_SLOT_* */
size_t operands_of(const answer *);

typedef struct reg_id {
    uint8_t class, number, bytes, high;
} reg_id;
bool reg_of(ZydisRegister, reg_id *);                        /* false: rip, flags, none */
bool mnemonic_in(const answer *, const ZydisMnemonic *list); /* ended by 0 */
bool answer_is_string(const answer *);
bool answer_is_nop(const answer *);
bool answer_repeats(const answer *);
bool answer_stores_at_reg(const answer *); /* its implicit operand's address is ModRM's reg */

#endif
