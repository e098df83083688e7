/* Which ranges of the address space are Inlay's own: cache, tool, stacks, blocks. The program neither sees them nor can
 * replace, unmap or protect them. */
#include "base/ranges.h"
#include "run/kernel.h"

void run_own_locked(uint64_t low, uint64_t high, bool add)
{
    inl_lock_take(&run_here.owned_lock);
    if (add) inl_ranges_put(&run_here.owned, (inl_range){low, high, 0});
    else inl_ranges_cut(&run_here.owned, low, high);
    inl_lock_release(&run_here.owned_lock);
}

/* Always under the process's lock, so that a fork finds the list of ranges whole. */
void run_own(uint64_t low, size_t size, bool add)
{
    inl_lock_take(&run_here.lock);
    run_own_locked(low, low + size, add);
    inl_lock_release(&run_here.lock);
}

bool run_is_ours(uint64_t low, uint64_t high)
{
    inl_lock_take(&run_here.owned_lock);
    size_t i = inl_ranges_behind(&run_here.owned, low);
    bool ours = i < run_here.owned.count && run_here.owned.items[i].low < high;
    inl_lock_release(&run_here.owned_lock);
    return ours;
}

uint64_t run_ours_begins(uint64_t low, uint64_t high)
{
    inl_lock_take(&run_here.owned_lock);
    size_t i = inl_ranges_behind(&run_here.owned, low);
    uint64_t at = i < run_here.owned.count && run_here.owned.items[i].low < high ? run_here.owned.items[i].low : high;
    inl_lock_release(&run_here.owned_lock);
    return at;
}

uint64_t run_ours_ends(uint64_t at, uint64_t high, uint64_t *next)
{
    inl_lock_take(&run_here.owned_lock);
    size_t i = inl_ranges_behind(&run_here.owned, at);
    for (; i < run_here.owned.count && run_here.owned.items[i].low <= at; i++) at = run_here.owned.items[i].high;
    *next = i < run_here.owned.count && run_here.owned.items[i].low < high ? run_here.owned.items[i].low : high;
    inl_lock_release(&run_here.owned_lock);
    return at < high ? at : high;
}
