/* Code that the program itself writes calls into, while it runs: XRay's, which clang's -fxray-instrument makes.
 *
 *     jmp over ; nop ...     at entries and exits of procedures; where they are stands in a section
 *
 *     xray_instr_map:  .quad place - . ; .quad procedure - . ; .byte kind, always, version ; padding to 32 bytes
 *
 * A call that is written into old code would be called by nobody, and written over the jump that leads to new code. So
 * such procedures stay. (Version 2 counts from where the number stands; the older ones, of absolute addresses, are not
 * known any more.) */
#include "move/isa.h"

#include <string.h>

enum { RECORD = 32, PROCEDURE_AT = 8, VERSION_AT = 18, VERSION = 2 };

static void mark_at(const move_work *w, uint64_t addr, uint8_t *marks, uint8_t with)
{
    uint32_t k = cfg_proc_covering(move_cfg(w), addr);
    if (k != CFG_NONE) marks[k] = with;
}

static void mark_record(const move_work *w, const uint8_t *record, uint64_t addr, uint8_t *marks, uint8_t with)
{
    int64_t place, procedure;
    if (record[VERSION_AT] != VERSION) return;
    memcpy(&place, record, sizeof place);
    memcpy(&procedure, record + PROCEDURE_AT, sizeof procedure);
    mark_at(w, addr + (uint64_t)place, marks, with);
    mark_at(w, addr + PROCEDURE_AT + (uint64_t)procedure, marks, with);
}

void move_find_sleds(const move_work *w, uint8_t *marks, uint8_t with)
{
    const image_section *s;
    size_t count = image_sections(move_cfg(w)->image, &s);
    for (size_t i = 0; i < count; i++) {
        const uint8_t *bytes;
        if (strcmp(s[i].name, "xray_instr_map") != 0) continue;
        size_t have = image_bytes(move_cfg(w)->image, s[i].addr, &bytes);
        for (size_t at = 0; at + RECORD <= s[i].size && at + RECORD <= have; at += RECORD)
            mark_record(w, bytes + at, s[i].addr + at, marks, with);
    }
}
