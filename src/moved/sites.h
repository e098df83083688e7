/* Places of system calls in code that is not instrumented: what sites.c, numbers.c and <isa>/sites.c share. */
#ifndef INL_MOVED_SITES_H
#define INL_MOVED_SITES_H

#include "base/arch.h"
#include "isa/code.h"
#include "isa/isa.h"
#include "moved/moved.h"
#include INL_ARCH_HEADER(moved, sites)

/* A procedure in memory, decoded. */
typedef struct moved_code {
    uint64_t start, end;
    isa_insn *insns;
    uint32_t *branches; /* those of insns that are direct branches */
    unsigned count, branch_count;
    uint64_t low; /* where its segment begins: what is in front may not be mapped */
    bool is_new;  /* that is the segment of new code and what is carried with it */
} moved_code;

/* numbers.c: may the number of the call that instruction `site` makes be one that matters? */
bool moved_number_may_matter(const moved_code *, int site);

/* <isa>/sites.c; moved_next_site: moved.h. */
bool moved_is_site(const isa_insn *);
/* Of a site's bytes: does it set the register that leads to the thread's block, which the program then has a copy of?
 */
bool moved_sets_block(const uint8_t *);
/* In no known procedure, but behind the load of its number, which lies at `from` or above: both of them. */
bool moved_lone_site(uint64_t at, uint64_t from, uint64_t *low, uint64_t *high);
/* The number that an instruction puts into `reg`, -1: not a constant; the register that it copies into `reg`, -1: it
 * does something else. */
long moved_constant_in(const isa_insn *, unsigned reg);
int moved_copied_into(const isa_insn *, unsigned reg);
bool moved_is_padding(const isa_insn *);
/* Bytes of a mark that only says that indirect branches may lead here. */
unsigned moved_mark_size(const uint8_t *);
void moved_put_jump(isa_code *, uint64_t to);
/* What takes the place of a system call, and of another site. */
void moved_put_gate(isa_code *);
void moved_put_other(isa_code *, const isa_insn *);
/* A procedure that makes call MOVED_IMAGES_CALL by the gate, all registers kept; where the call returns to. */
uint64_t moved_put_call(isa_code *);

#endif
