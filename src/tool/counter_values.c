/* Snippets that look at a counter where they run. They have a file of their own so that a tool which is linked without
 * it is known to ask for values by calls alone, which add what joint counters say (joint.c). Nothing that each tool is
 * linked with may need this file. */
#include "tool/state.h"

const char tool_reads_counters = 1;

/* Where it runs, such a snippet wants the counter itself: counts are left where they were inserted. */
inlay_expr inlay_counter_value(inlay_counter *c)
{
    if (!tool_counter_value_wanted() || !tool_counter_has_place(c, false)) return NULL;
    snippet bank = {.kind = SNIPPET_COUNTER, .index = c->index};
    inlay_expr sum = tool_snippet_of(bank);
    while (c->index < WEAVE_BANKED && ++bank.value < WEAVE_BANKS)
        sum = inlay_binary(INLAY_ADD, sum, tool_snippet_of(bank));
    return sum;
}
