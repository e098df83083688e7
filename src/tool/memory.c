/* Memory for tools and for what lives as long as the process: zeroed, never freed, from any thread.
 * Large pieces are mappings of their own, so that what is not touched costs nothing. */
#include "tool/state.h"

#include <inlay/tool.h>

#include <sys/mman.h>

enum { LARGE = 64 << 10 };

static inl_arena arena;

void *tool_alloc(size_t bytes)
{
    if (bytes >= LARGE) {
        void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        return p == MAP_FAILED ? NULL : p;
    }
    inl_lock_take(&tool_small_lock);
    void *p = inl_arena_alloc(&arena, bytes);
    inl_lock_release(&tool_small_lock);
    return p;
}

void *inlay_alloc(size_t bytes) { return tool_alloc(bytes); }
