/* Records by key, for what a tool knows of an address.
 *
 * They live in the carried heap and are chained there; the map from key to record is the process's own
 * and is made from the chain when a carried tool first asks. */
#include "tool/state.h"
#include "base/map.h"

#include <inlay/tool.h>

#include <stdlib.h>

typedef struct record {
    struct record *next; /* in the chain of all, where there is a carried heap */
    uint64_t key;
    size_t size;
    _Alignas(16) unsigned char bytes[];
} record;

static inl_map records;
static bool attached;

static bool add_locked(record *r) { return inl_map_put(&records, r->key, (uint64_t)(uintptr_t)r); }

static void attach_locked(void)
{
    if (attached) return;
    attached = true;
    tool_heap_root *heap = tool_heap();
    for (record *r = heap ? heap->roots[ROOT_RECORDS] : NULL; r; r = r->next)
        if (!add_locked(r)) tool_say_limited("out of memory: records are lost");
}

static void *find_or_add_locked(uint64_t key, size_t size)
{
    uint64_t value;
    attach_locked();
    if (inl_map_get(&records, key, &value)) {
        record *r = (record *)(uintptr_t)value;
        return r->size >= size ? r->bytes : NULL;
    }
    record *r = tool_carried_alloc(sizeof *r + size);
    if (!r) return NULL;
    r->key = key;
    r->size = size;
    if (!add_locked(r)) return NULL;
    tool_heap_root *heap = tool_heap();
    if (heap) {
        r->next = heap->roots[ROOT_RECORDS];
        heap->roots[ROOT_RECORDS] = r;
    }
    return r->bytes;
}

void *inlay_record(uint64_t key, size_t size)
{
    inl_lock_take(&tool_records_lock);
    void *bytes = find_or_add_locked(key, size);
    inl_lock_release(&tool_records_lock);
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
    inl_lock_take(&tool_records_lock);
    attach_locked();
    uint64_t *keys = malloc((records.count + 1) * sizeof *keys), key;
    size_t count = 0, at = 0;
    while (keys && inl_map_next(&records, &at, &key, NULL)) keys[count++] = key;
    inl_lock_release(&tool_records_lock);
    if (!keys) {
        tool_say("out of memory: records cannot be listed");
        return;
    }
    qsort(keys, count, sizeof *keys, by_value);
    for (size_t i = 0; i < count; i++) each(keys[i], inlay_record(keys[i], 0), arg);
    free(keys);
}
