/* Values of procedures' entries, where the program runs: a table that grows, by value and frame. Nothing is ever taken
 * out of it: of one frame there is one value, the last one's. The program's own threads are kept apart by their frames,
 * so lists need no lock but for a new one's place at their head.
 *
 * The routines that find and keep are what the weaver can look through (no call through a pointer, no thread-local
 * variable), since they run at each entry; memory comes from the tool's malloc, which is such code as well. */
#include "tool/entered.h"
#include "tool/state.h"

#include <stdlib.h>

enum { LISTS = 1 << 14 };

typedef struct kept {
    struct kept *next;
    uint64_t of, frame, value;
} kept;

static kept *lists[LISTS];

static kept **list_of(uint64_t of, uint64_t frame)
{
    return &lists[((of * 0x9e3779b97f4a7c15ull + (frame >> 3)) * 0x9e3779b97f4a7c15ull) >> 50];
}

_Static_assert(LISTS == 1ull << (64 - 50), "the upper bits are the list's number");

static kept *find(uint64_t of, uint64_t frame)
{
    kept *k = __atomic_load_n(list_of(of, frame), __ATOMIC_ACQUIRE);
    while (k && (k->of != of || k->frame != frame)) k = k->next;
    return k;
}

void tool_entered_keep(uint64_t of, uint64_t frame, uint64_t value)
{
    kept *k = find(of, frame), **list = list_of(of, frame);
    if (k) {
        k->value = value;
        return;
    }
    k = malloc(sizeof *k);
    if (!k) return;
    k->of = of, k->frame = frame, k->value = value;
    k->next = __atomic_load_n(list, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(list, &k->next, k, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {}
}

bool tool_entered_has(uint64_t of, uint64_t frame) { return find(of, frame); }

uint64_t tool_entered_find(uint64_t of, uint64_t frame)
{
    const kept *k = find(of, frame);
    return k ? k->value : 0;
}

/* Not in a process that a mutator has changed, whose standard error is not the tool's: there it is to be expected. */
void tool_entered_say(const char *procedure)
{
    if (tool_now->options.mutating) return;
    tool_say_limited("code that needs what %s was called with is not executed: that call had begun before, or came in "
                     "by another way",
                     procedure);
}
