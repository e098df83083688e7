/* Edges as points (loop.h). Most have a place that nothing else leads through: behind the last instruction, on a
 * branch's taken side. The other sides of branches and the targets of jump tables have one with a condition, in front.
 */
#include "tool/code.h"

#include <inlay/loop.h>

/* The block's beginning, if there is no other way to it. */
static inlay_point *at_beginning(inlay_block *to, const weave_insn *from)
{
    enum { OTHERS = INLAY_BLOCK_TARGET | INLAY_BLOCK_LANDING | INLAY_BLOCK_ADDRESS_TAKEN | INLAY_BLOCK_OUTSIDE };
    if (to && !(inlay_block_flags(to) & (OTHERS | INLAY_BLOCK_ENTRY))) return inlay_before(inlay_block_first(to));
    return tool_no_point(from, to ? "code is branched to from elsewhere as well, where control comes back of"
                                  : "nothing is known of the code behind");
}

static inlay_point *not_taken(inlay_insn *last)
{
    return tool_point_guarded(last, inlay_unary(INLAY_LNOT, inlay_taken()));
}

static inlay_point *by_target(inlay_insn *last, uint64_t target)
{
    return tool_point_guarded(last, inlay_binary(INLAY_EQ, inlay_branch_target(), inlay_const(target)));
}

/* To another procedure: by whatever kind of instruction. Of a conditional branch the way that is not taken is the
 * second. */
static inlay_point *to_another(inlay_insn *last, inlay_edge edge, unsigned k)
{
    const weave_insn *insn = (const weave_insn *)last;
    switch (insn->in.flow) {
    case ISA_FLOW_JUMP_IND: return by_target(last, edge.target);
    case ISA_FLOW_CALL:
    case ISA_FLOW_CALL_IND: return at_beginning(edge.to, insn);
    case ISA_FLOW_COND:
    case ISA_FLOW_COND_REG: return k ? not_taken(last) : inlay_taken_edge(last);
    default: return inlay_taken_edge(last);
    }
}

inlay_point *inlay_edge_point(inlay_block *from, unsigned k)
{
    if (!from) return tool_point_of_nothing("a point of a block");
    inlay_insn *last = inlay_block_last(from);
    const weave_insn *insn = (const weave_insn *)last;
    if (k >= inlay_block_successor_count(from)) return tool_no_point(insn, "there is no such edge behind");
    inlay_edge edge = inlay_block_successor(from, k);
    if (insn->in.flow == ISA_FLOW_TX && k) return at_beginning(edge.to, insn); /* which way, nothing in front knows */
    switch (edge.kind) {
    case INLAY_EDGE_FALL: return insn->in.flow == ISA_FLOW_NEXT ? inlay_after(last) : at_beginning(edge.to, insn);
    case INLAY_EDGE_RETURNED: return at_beginning(edge.to, insn);
    case INLAY_EDGE_NOT_TAKEN: return not_taken(last);
    case INLAY_EDGE_TABLE: return by_target(last, edge.target);
    case INLAY_EDGE_TAIL: return to_another(last, edge, k);
    default: return inlay_taken_edge(last);
    }
}

inlay_point *inlay_call_return(inlay_insn *call)
{
    const weave_insn *i = (const weave_insn *)call;
    if (!call) return tool_point_of_nothing("a point of an instruction");
    if (!inlay_insn_is_call(call)) return tool_no_point(i, "it is no call:");
    if (!i->run->view) return tool_no_point(i, "only the static view knows where control comes back of");
    inlay_block *b = (inlay_block *)&i->run->blocks[i->block];
    unsigned ways = inlay_block_successor_count(b); /* back, also where that is another procedure's code */
    return ways ? inlay_edge_point(b, ways - 1) : tool_no_point(i, "control does not come back of");
}
