/* Notes: Inlay's own, and what becomes of the compiler's.
 *
 *     .note.inlay   owner "Inlay", type 1: move_boot_links, `self` being its address in the note
 *                   owner "Inlay", type 2: the new file's identity, derived from the original's
 *
 * The original's build-id stays, so that debug files are found. The property note stays too, but a file
 * whose indirect branch targets were overwritten must not claim to be fit for IBT or BTI.
 */
#include "elf/private.h"

enum {
    NOTE_LINKS = 1,
    NOTE_IDENTITY = 2,
    owner_size = 8, /* "Inlay", padded */
    note_head = sizeof(Elf64_Nhdr) + owner_size,
    identity_size = 20,
    property_type = 5, /* NT_GNU_PROPERTY_TYPE_0 */
};

void elf_reserve_notes(elf_writer *w)
{
    inl_bytes_align(&w->ro, 4);
    w->notes_at = inl_bytes_reserve(&w->ro, 2 * note_head + sizeof(move_boot_links) + identity_size);
    w->notes_size = w->ro.size - w->notes_at;
    elf_area area = {.name = ".note.inlay",
                     .type = SHT_NOTE,
                     .flags = SHF_ALLOC,
                     .addr = w->ro.addr + w->notes_at,
                     .size = w->notes_size,
                     .align = 4};
    if (!elf_add_area(w, area)) w->ro.failed = true;
}

typedef struct identity {
    uint64_t lane[3];
} identity;

static void mix(identity *id, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size) {
        uint64_t word = 0;
        size_t n = size < 8 ? size : 8;
        memcpy(&word, at, n);
        for (int i = 0; i < 3; i++) {
            uint64_t x = (id->lane[i] ^ word) * (0x9e3779b97f4a7c15ull + 2 * (uint64_t)i);
            id->lane[i] = x ^ x >> 29 ^ size << (i * 3);
        }
        at += n;
        size -= n;
    }
}

static void derive(const elf_writer *w, uint8_t out[identity_size])
{
    const move_plan *p = w->plan;
    const elf_carry *carry = w->options->carry;
    identity id = {{1, 2, 3}};
    uint64_t all[3];
    if (w->im->build_id_size) mix(&id, w->im->build_id_bytes, w->im->build_id_size);
    else mix(&id, w->old, w->old_size);
    mix(&id, p->text, p->text_size);
    for (size_t i = 0; i < w->target->patches.count; i++)
        mix(&id, w->target->patches.items[i].now, w->target->patches.items[i].size);
    if (carry) mix(&id, carry->data, carry->data_size);
    for (int i = 0; i < 3; i++) {
        uint64_t before = id.lane[(i + 1) % 3];
        mix(&id, &before, sizeof before);
        all[i] = id.lane[i];
    }
    memcpy(out, all, identity_size);
}

static size_t put_note(elf_writer *w, size_t at, uint32_t type, const void *bytes, uint32_t size)
{
    static const char owner[owner_size] = "Inlay";
    Elf64_Nhdr head = {.n_namesz = 6, .n_descsz = size, .n_type = type};
    inl_bytes_set(&w->ro, at, &head, sizeof head);
    inl_bytes_set(&w->ro, at + sizeof head, owner, owner_size);
    inl_bytes_set(&w->ro, at + note_head, bytes, size);
    return at + note_head + size;
}

/* Our own note is the first in its segment. */
bool elf_is_rewritten(const image *im)
{
    const image_view *v = &im->view;
    const uint8_t *table = image_view_bytes(v, v->header.e_phoff, v->header.e_phnum * sizeof(Elf64_Phdr));
    for (size_t i = 0; table && i < v->header.e_phnum; i++) {
        Elf64_Phdr p;
        Elf64_Nhdr n;
        memcpy(&p, table + i * sizeof p, sizeof p);
        const uint8_t *note = p.p_type == PT_NOTE ? image_view_bytes(v, p.p_offset, note_head) : NULL;
        if (!note) continue;
        memcpy(&n, note, sizeof n);
        if (n.n_type == NOTE_LINKS && n.n_namesz == 6 && n.n_descsz == sizeof(move_boot_links) &&
            memcmp(note + sizeof n, "Inlay", 6) == 0)
            return true;
    }
    return false;
}

void elf_fill_notes(elf_writer *w, move_boot_links links)
{
    uint8_t id[identity_size];
    derive(w, id);
    links.self = w->ro.addr + w->notes_at + note_head;
    size_t at = put_note(w, w->notes_at, NOTE_LINKS, &links, sizeof links);
    put_note(w, at, NOTE_IDENTITY, id, sizeof id);
}

static bool overwrites_targets(const elf_writer *w)
{
    for (size_t i = 0; i < w->target->patches.count; i++) {
        const uint8_t *bytes;
        const move_patch *patch = &w->target->patches.items[i];
        size_t have = image_bytes(w->im, patch->at.at - w->plan->bias, &bytes);
        if (w->isa->is_mark(bytes, have) && !w->isa->is_mark(patch->now, patch->size)) return true;
    }
    return false;
}

/* File offset of the word of features among the properties of a note segment, 0: none. */
static uint64_t find_features(uint32_t property, const uint8_t *notes, size_t size, uint64_t offset)
{
    for (size_t at = 0; size - at >= 16;) {
        Elf64_Nhdr n;
        memcpy(&n, notes + at, sizeof n);
        uint64_t name = ((uint64_t)n.n_namesz + 3) & ~3ull, desc = ((uint64_t)n.n_descsz + 7) & ~7ull;
        uint64_t from = at + sizeof n + name, end = from + n.n_descsz;
        if (from > size || end > size) return 0;
        bool properties = n.n_type == property_type && n.n_namesz == 4 && memcmp(notes + at + sizeof n, "GNU", 4) == 0;
        for (uint64_t p = from; properties && p <= end && end - p >= 12;) {
            uint32_t head[2]; /* type, size */
            memcpy(head, notes + p, sizeof head);
            if (head[0] == property && head[1] == 4) return offset + p + 8;
            p += 8 + (((uint64_t)head[1] + 7) & ~7ull);
        }
        if (desc > size - from) return 0;
        at = (size_t)(from + desc);
    }
    return 0;
}

inl_status elf_clear_marks(elf_writer *w, inl_error *e)
{
    if (!overwrites_targets(w)) return INL_OK;
    for (size_t i = 0; i < w->phdr_count; i++) {
        const Elf64_Phdr *p = &w->phdrs[i];
        if (p->p_type != PT_NOTE || p->p_align != 8) continue;
        const uint8_t *notes = image_view_bytes(&w->im->view, p->p_offset, p->p_filesz);
        uint64_t at = notes ? find_features(w->isa->marks_property, notes, p->p_filesz, p->p_offset) : 0;
        if (at == 0 || !(w->old[at] & 1)) continue;
        uint8_t *cleared = inl_arena_alloc(&w->arena, 1);
        if (!cleared) return elf_no_memory(w, e);
        *cleared = w->old[at] & ~1;
        if (!elf_add_edit(w, at, cleared, 1)) return elf_no_memory(w, e);
    }
    return INL_OK;
}
