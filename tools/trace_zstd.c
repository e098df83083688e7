/* Packed records, compressed, before they are written: what writes little waits little, so this pays for most of
 * itself.
 *
 * Each thread has a compressor of its own, in memory that it has anyway; nothing is allocated. Where records do not get
 * shorter by it (a fine clock, arguments), most chunks are not even tried. */
#define ZSTD_STATIC_LINKING_ONLY
#include "trace.h"

#include <zstd.h>

enum { LEVEL = -1, INPUT = 128 << 10, SPACE = 512 << 10, REST = 15 };

typedef struct squeezer {
    ZSTD_CCtx *context; /* NULL: not yet */
    unsigned rests;     /* so many chunks are not tried */
    _Alignas(16) char space[SPACE];
    char out[ZSTD_COMPRESSBOUND(INPUT)];
} squeezer;

static inlay_local *squeezers; /* NULL: --no-compress */

bool trace_squeeze_prepare(bool wanted) { return !wanted || (squeezers = inlay_local_new(sizeof(squeezer))); }

size_t trace_squeeze(const void *records, size_t bytes, const void **out)
{
    squeezer *s = squeezers ? inlay_local_now(squeezers) : NULL;
    if (!s || bytes > INPUT || (s->rests && s->rests--)) return 0;
    if (!s->context) s->context = ZSTD_initStaticCCtx(s->space, SPACE);
    size_t n = s->context ? ZSTD_compressCCtx(s->context, s->out, sizeof s->out, records, bytes, LEVEL) : 0;
    if (ZSTD_isError(n)) n = 0;
    bool pays = n && n + n / 4 < bytes;
    if (!pays) s->rests = REST;
    *out = s->out;
    return pays ? n : 0;
}
