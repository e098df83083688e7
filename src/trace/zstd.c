/* Compressed chunks. */
#include "trace/reader.h"

#include <zstd.h>

#include <stdlib.h>

enum { MOST = 1 << 20 }; /* more than a chunk has */

void *trace_inflate(const void *from, size_t bytes, size_t *size)
{
    unsigned long long whole = ZSTD_getFrameContentSize(from, bytes);
    if (whole == ZSTD_CONTENTSIZE_ERROR || whole == ZSTD_CONTENTSIZE_UNKNOWN || !whole || whole > MOST) return NULL;
    void *out = malloc((size_t)whole);
    size_t n = out ? ZSTD_decompress(out, (size_t)whole, from, bytes) : 0;
    if (out && n == whole) {
        *size = n;
        return out;
    }
    free(out);
    return NULL;
}
