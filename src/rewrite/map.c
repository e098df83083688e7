/* Old and new addresses. Procedures are laid out in the order of their old addresses, so the map
 * ascends in both and one binary search serves either question. */
#include "rewrite/plan.h"

bool rewrite_map_add(rewrite_work *w, uint64_t old, uint32_t at, uint32_t code_at)
{
    return inl_vec_push(&w->map, (rewrite_map){old, at, code_at});
}

uint64_t rewrite_new_address(const rewrite_plan *plan, uint64_t old_addr, bool code)
{
    size_t low = 0, high = plan->map_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->map[middle].old_addr < old_addr) low = middle + 1;
        else high = middle;
    }
    if (low == plan->map_count || plan->map[low].old_addr != old_addr) return 0;
    return plan->text_addr + (code ? plan->map[low].code_off : plan->map[low].new_off);
}

/* The procedure whose new code covers an address. */
static bool in_moved_code(const rewrite_plan *plan, uint64_t old_addr, uint64_t new_addr)
{
    uint32_t proc = cfg_proc_covering(plan->cfg, old_addr - plan->bias);
    if (proc == CFG_NONE) return false;
    const rewrite_proc *p = &plan->procs[proc];
    return p->new_addr && new_addr - p->new_addr < p->new_size;
}

uint64_t rewrite_old_address(const rewrite_plan *plan, uint64_t new_addr)
{
    uint64_t off = new_addr - plan->text_addr;
    size_t low = 0, high = plan->map_count;
    if (off >= plan->text_size) return 0;
    while (low < high) { /* the first entry that begins behind */
        size_t middle = low + (high - low) / 2;
        if (plan->map[middle].new_off > off) high = middle;
        else low = middle + 1;
    }
    if (low == 0) return 0;
    uint64_t old = plan->map[low - 1].old_addr;
    return in_moved_code(plan, old, new_addr) ? old : 0;
}
