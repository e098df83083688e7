/* Which vector state there is, decided where the program runs and not where code was woven. */
#include "weave/x86_64/vectors.h"

#include "isa/x86_64/bases.h"
#include "isa/x86_64/xstate.h"

_Static_assert(offsetof(weave_frame, vector_area) == OFF_XSAVE_AREA, "vectors.h");
_Static_assert(offsetof(weave_frame, app_tls_base) == OFF_APP_TLS, "vectors.h");
_Static_assert(offsetof(weave_frame, tool_tls_base) == OFF_TOOL_TLS, "vectors.h");
_Static_assert(offsetof(weave_frame, tool_base_in) == OFF_BASE_IN, "vectors.h");
_Static_assert(offsetof(weave_frame, xsave_mask) == OFF_XSAVE_MASK, "vectors.h");

void weave_vectors_choose(weave_frame *f)
{
    const x86_xstate *x = x86_xstate_here();
    f->xsave_mask = x->features;
    f->no_xsave = !x->xsave;
    f->save_vectors = x->xsave ? weave_save_xsave : weave_save_fxsave;
    f->load_vectors = x->xsave ? weave_load_xsave : weave_load_fxsave;
    f->tool_base_in = 1;
    f->take_tool_base = x86_bases_by_call ? weave_call_tool_base : weave_take_tool_base;
    f->take_app_base = x86_bases_by_call ? weave_call_app_base : weave_take_app_base;
}

/* Rows times bytes of a row, by the configuration that is in force. */
static uint64_t tile_bytes(unsigned tile)
{
    enum { COLUMN_BYTES = 16, ROWS = 48, TILES = 8 };
    union {
        uint8_t bytes[64];
        uint16_t words[32];
    } config;
    __asm__ volatile(".byte 0xc4, 0xe2, 0x79, 0x49, 0x07" : : "D"(&config) : "memory"); /* sttilecfg [rdi] */
    return tile < TILES ? (uint64_t)config.bytes[ROWS + tile] * config.words[COLUMN_BYTES / 2 + tile] : 0;
}

uint64_t weave_state_bytes(uint64_t low, uint64_t high, uint64_t form, uint64_t header)
{
    const x86_xstate *x = x86_xstate_here();
    uint64_t features = (uint32_t)low | high << 32;
    if (form == WEAVE_STATE_TILE) return tile_bytes((unsigned)low);
    if (form == WEAVE_STATE_RESTORED) form = header >> 63 ? WEAVE_STATE_COMPACTED : WEAVE_STATE_STANDARD;
    return form == WEAVE_STATE_COMPACTED ? x86_xstate_compacted(x, features) : x86_xstate_size(x, features);
}
