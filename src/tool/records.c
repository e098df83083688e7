/* Records by key, for what a tool knows of an address.
 *
 * They live in the carried heap and are chained there; the map from key to record is the process's own
 * and is made from the chain when a carried tool first asks. */
#include "tool/state.h"
#include "base/map.h"

#include <inlay/tool.h>

#include <stdlib.h>

/* There may be one for each block of a program, of a byte or two: what stands in front of it is kept short. */
typedef struct record {
    uint64_t key;
    uint32_t next; /* in the chain of all, where there is a carried heap: units from its begin; 0: none */
    uint32_t size;
    unsigned char bytes[];
} record;
enum { UNIT = 8, ALIGN = 16 };
_Static_assert(sizeof(record) % ALIGN == 0, "records are as aligned as what stands in front of them");

static bool add_locked(record *r) { return inl_map_put(&tool_now->records.by_key, r->key, (uint64_t)(uintptr_t)r); }

static record *chained(const tool_heap_root *heap, uint32_t at)
{
    return at ? (record *)(uintptr_t)((uint64_t)(uintptr_t)heap + (uint64_t)at * UNIT) : NULL;
}

static void attach_locked(void)
{
    if (tool_now->records.attached) return;
    tool_now->records.attached = tool_now->records.by_key.of_code = true;
    tool_heap_root *heap = tool_heap();
    for (record *r = heap ? heap->roots[ROOT_RECORDS] : NULL; r; r = chained(heap, r->next))
        if (!add_locked(r)) tool_say_limited("out of memory: records are lost");
}

static void *find_or_add_locked(uint64_t key, size_t size)
{
    uint64_t value;
    attach_locked();
    if (inl_map_get(&tool_now->records.by_key, key, &value)) {
        record *r = (record *)(uintptr_t)value;
        if (r->size >= size) return r->bytes;
        tool_say_limited("inlay_record: the record of %#llx has %u bytes, as it was first asked for; %zu cannot be had",
                         (unsigned long long)key, r->size, size);
        return NULL;
    }
    record *r = size < UINT32_MAX ? tool_carried_alloc_at(sizeof *r + size, size < ALIGN ? UNIT : ALIGN) : NULL;
    if (!r) return NULL;
    r->key = key;
    r->size = (uint32_t)size;
    if (!add_locked(r)) return NULL;
    tool_heap_root *heap = tool_heap();
    if (heap) {
        record *last = heap->roots[ROOT_RECORDS];
        uint64_t at = last ? ((uint64_t)(uintptr_t)last - (uint64_t)(uintptr_t)heap) / UNIT : 0;
        if (at > UINT32_MAX) return NULL;
        r->next = (uint32_t)at;
        heap->roots[ROOT_RECORDS] = r;
    }
    return r->bytes;
}

void *inlay_record(uint64_t key, size_t size)
{
    inl_lock_take(&tool_now->locks.records);
    void *bytes = find_or_add_locked(key, size);
    inl_lock_release(&tool_now->locks.records);
    return bytes;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}

/* The keys are copied: `each` may ask for records itself. */
void inlay_records(void (*each)(uint64_t key, void *record, void *arg), void *arg)
{
    if (!each) return;
    inl_lock_take(&tool_now->locks.records);
    attach_locked();
    uint64_t *keys = malloc((tool_now->records.by_key.count + 1) * sizeof *keys), key;
    size_t count = 0, at = 0;
    while (keys && inl_map_next(&tool_now->records.by_key, &at, &key, NULL)) keys[count++] = key;
    inl_lock_release(&tool_now->locks.records);
    if (!keys) {
        tool_say("out of memory: records cannot be listed");
        return;
    }
    qsort(keys, count, sizeof *keys, by_value);
    for (size_t i = 0; i < count; i++) each(keys[i], inlay_record(keys[i], 0), arg);
    free(keys);
}
