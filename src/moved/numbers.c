/* Which system call is it? The number is followed back to where it is set, on all ways through its procedure. */
#include "moved/private.h"
#include "moved/sites.h"
#include INL_ARCH_HEADER(run, abi)

/* Where the search for a number has been. */
enum { MOST_SEEN = 64 };
typedef struct search {
    const moved_code *p;
    struct {
        uint32_t at, reg;
    } seen[MOST_SEEN];
    unsigned count;
} search;

/* 1: been there; 0: not yet; -1: it takes too long. */
static int been(search *s, int at, unsigned reg)
{
    for (unsigned k = 0; k < s->count; k++)
        if (s->seen[k].at == (uint32_t)at && s->seen[k].reg == reg) return 1;
    if (s->count == MOST_SEEN) return -1;
    s->seen[s->count].at = (uint32_t)at;
    s->seen[s->count++].reg = reg;
    return 0;
}

static bool may_matter(search *s, int at, unsigned reg);

/* By a branch to instruction `at`? */
static bool may_matter_by_branch(search *s, int at, unsigned reg, bool *branched)
{
    const moved_code *p = s->p;
    for (unsigned b = 0; b < p->branch_count; b++) {
        const isa_insn *in = &p->insns[p->branches[b]];
        if (in->target != p->insns[at].addr) continue;
        *branched = true;
        if (in->flow == ISA_FLOW_CALL || may_matter(s, (int)p->branches[b], reg)) return true;
    }
    return false;
}

/* May the number in `reg` at instruction `at` be one that matters? All ways to there are followed back to
 * where it is set. */
static bool may_matter(search *s, int at, unsigned reg)
{
    for (int k = at;; k--) {
        int known = been(s, k, reg);
        if (known) return known < 0;
        bool branched = false;
        if (may_matter_by_branch(s, k, reg, &branched) || k == 0) return true;
        const isa_insn *in = &s->p->insns[k - 1];
        bool falls = in->flow != ISA_FLOW_JUMP && in->flow != ISA_FLOW_RETURN && in->flow != ISA_FLOW_TRAP;
        if (!falls) return !branched && !moved_is_padding(&s->p->insns[k]); /* an indirect branch leads here */
        if (in->flow == ISA_FLOW_CALL || in->flow == ISA_FLOW_CALL_IND) {
            if (!(MOVED_CALLEE_SAVED >> reg & 1)) return true;
            continue;
        }
        if (in->flow == ISA_FLOW_SYSCALL) {
            if (MOVED_SYSCALL_CLOBBERED >> reg & 1) return true;
            continue;
        }
        if (in->flow == ISA_FLOW_JUMP_IND || in->flow == ISA_FLOW_FAR) return true;
        isa_effects fx;
        isa_for_machine(RUN_ELF_MACHINE)->effects(in, &fx);
        if (!(fx.writes >> reg & 1)) continue;
        int from = moved_copied_into(in, reg);
        if (from < 0) return moved_syscall_matters(moved_constant_in(in, reg));
        reg = (unsigned)from;
    }
}

bool moved_number_may_matter(const moved_code *p, int site)
{
    search s = {.p = p};
    return may_matter(&s, site, MOVED_NUMBER);
}
