/* The program's memory, for tools (memory.h): copied by the runtime's own way, whose faults its handlers know. Where
 * there is no program yet, an image's file says what will be there. */
#include "tool/state.h"
#include "base/page.h"
#include "move/boot.h"
#include "run/kernel.h"

#include <inlay/memory.h>

#include <string.h>

/* The instrumentor reads files. */
static size_t read_files(void *to, uint64_t from, size_t bytes)
{
    const uint8_t *at;
    bool entered = tool_enter();
    inlay_image *i = tool_image_at(from);
    image *file = i ? tool_image_file(i) : NULL;
    size_t n = file && to ? image_bytes(file, from - i->bias, &at) : 0;
    if (n > bytes) n = bytes;
    if (n) memcpy(to, at, n);
    tool_leave(entered);
    return n;
}

size_t inlay_memory_read(void *to, uint64_t from, size_t bytes)
{
    if (tool_handoff_data.role == TOOL_INSTRUMENTOR) return read_files(to, from, bytes);
    return bytes - run_safe_copy(to, (const void *)(uintptr_t)from, bytes);
}

/* What travels with a rewritten program is not among what the runtime keeps for itself. */
static bool is_own(uint64_t low, uint64_t high)
{
    const tool_handoff *h = &tool_handoff_data;
    bool heap = h->role == TOOL_CARRIED && low < h->region_high && high > MOVE_HEAP_BASE;
    bool tool = low < h->start.tool_high && high > h->start.tool_low;
    return heap || tool || run_is_ours(low, high);
}

size_t inlay_memory_write(uint64_t to, const void *from, size_t bytes)
{
    if (tool_handoff_data.role == TOOL_INSTRUMENTOR) {
        tool_say_limited("cannot write to memory at 0x%llx: the program does not run yet", (unsigned long long)to);
        return 0;
    }
    if (!bytes || to + bytes < to || is_own(to, to + bytes)) return 0;
    return bytes - run_safe_copy((void *)(uintptr_t)to, from, bytes);
}

long inlay_memory_string(char *out, uint64_t from, size_t size)
{
    size_t n = 0;
    if (!out || !size) return -1;
    while (n < size - 1) {
        size_t chunk = INL_PAGE - ((from + n) & (INL_PAGE - 1));
        if (chunk > size - 1 - n) chunk = size - 1 - n;
        size_t got = inlay_memory_read(out + n, from + n, chunk);
        const char *end = memchr(out + n, 0, got);
        if (end) return end - out;
        if (got < chunk) {
            out[0] = 0;
            return -1;
        }
        n += got;
    }
    out[n] = 0;
    return (long)n;
}
