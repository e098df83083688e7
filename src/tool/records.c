/* Records by key, for what a tool knows of an address. */
#include "tool/state.h"
#include "base/map.h"

#include <inlay/tool.h>

#include <stdlib.h>

typedef struct record {
    size_t size;
    _Alignas(16) unsigned char bytes[];
} record;

static inl_map records;

static void *find_or_add_locked(uint64_t key, size_t size)
{
    uint64_t value;
    if (inl_map_get(&records, key, &value)) {
        record *r = (record *)(uintptr_t)value;
        return r->size >= size ? r->bytes : NULL;
    }
    record *r = tool_alloc(sizeof *r + size);
    if (!r || !inl_map_put(&records, key, (uint64_t)(uintptr_t)r)) return NULL;
    r->size = size;
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
