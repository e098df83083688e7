/* Archives of objects (ar): a magic of 8 bytes, then members, each with a head of 60 bytes of text, at even places.
 *
 *     "/"  "/SYM64/"   where which symbol is defined, by the members' places in the file
 *     "//"             names that are too long for a head, which says "/OFFSET" then
 *
 * Members grow, so the table of symbols is made anew: its numbers are places, in the order of its names. */
#include "object/object.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAGIC = 8, HEAD = 60, NAME = 16, SIZE_AT = 48, SIZE_DIGITS = 10 };
static const char magic[] = "!<arch>\n", thin[] = "!<thin>\n";

bool object_is_archive(const void *bytes, size_t size)
{
    return size >= MAGIC && (memcmp(bytes, magic, MAGIC) == 0 || memcmp(bytes, thin, MAGIC) == 0);
}

typedef struct member {
    size_t head, begin, size; /* in the old file */
    size_t now;               /* its head in the new one */
    char name[256];
} member;

typedef struct archive {
    const uint8_t *bytes;
    size_t size;
    const char *path;
    member *members;
    size_t count;
    const char *names; /* the long ones */
    size_t names_size;
} archive;

static bool is_special(const member *m) { return m->name[0] == '/' && (m->name[1] == 0 || m->name[1] == '/'); }
static bool is_wide(const member *m) { return strcmp(m->name, "/SYM64/") == 0; }

static void name_member(const archive *a, member *m)
{
    const char *text = (const char *)a->bytes + m->head;
    size_t n = NAME;
    while (n && text[n - 1] == ' ') n--;
    if (text[0] == '/' && text[1] >= '0' && text[1] <= '9' && a->names) {
        size_t at = strtoul(text + 1, NULL, 10);
        text = at < a->names_size ? a->names + at : "?";
        for (n = 0;
             at < a->names_size && at + n < a->names_size && n < sizeof m->name && text[n] != '/' && text[n] != '\n';)
            n++;
    } else if (n > 1 && text[0] != '/' && text[n - 1] == '/') {
        n--;
    }
    if (n >= sizeof m->name) n = sizeof m->name - 1;
    memcpy(m->name, text, n);
    m->name[n] = 0;
}

static inl_status read_members(archive *a, inl_error *e)
{
    size_t room = 0;
    for (size_t at = MAGIC; at + HEAD <= a->size;) {
        member m = {.head = at, .begin = at + HEAD};
        char digits[SIZE_DIGITS + 1] = "";
        memcpy(digits, a->bytes + at + SIZE_AT, SIZE_DIGITS);
        m.size = strtoul(digits, NULL, 10);
        if (m.size > a->size - m.begin || memcmp(a->bytes + at + HEAD - 2, "`\n", 2) != 0)
            return inl_fail(e, INL_ERR_FORMAT, "%s: an archive with a member that makes no sense at 0x%zx", a->path,
                            at);
        name_member(a, &m);
        if (strcmp(m.name, "//") == 0) a->names = (const char *)a->bytes + m.begin, a->names_size = m.size;
        if (a->count == room) {
            room = room ? room * 2 : 64;
            member *more = realloc(a->members, room * sizeof *more);
            if (!more) return inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", a->path);
            a->members = more;
        }
        a->members[a->count++] = m;
        at = m.begin + m.size + (m.size & 1);
    }
    return INL_OK;
}

static void put_member(const archive *a, const member *m, const void *bytes, size_t size, inl_bytes *out)
{
    char digits[SIZE_DIGITS + 1];
    size_t head = out->size;
    inl_bytes_put(out, a->bytes + m->head, HEAD);
    snprintf(digits, sizeof digits, "%-10zu", size);
    inl_bytes_set(out, head + SIZE_AT, digits, SIZE_DIGITS);
    inl_bytes_put(out, bytes, size);
    if (size & 1) inl_bytes_put(out, "\n", 1);
}

/* Big-endian. */
static uint64_t number_at(const uint8_t *p, unsigned size)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < size; i++) n = n << 8 | p[i];
    return n;
}

static uint64_t new_place(const archive *a, uint64_t head)
{
    for (size_t i = 0; i < a->count; i++)
        if (a->members[i].head == head) return a->members[i].now;
    return 0;
}

/* The table of symbols in the new file, whose numbers are those of the old. */
static bool renumber(const archive *a, const member *m, inl_bytes *out)
{
    unsigned width = is_wide(m) ? 8 : 4;
    const uint8_t *p = a->bytes + m->begin;
    if (m->size < width) return false;
    uint64_t count = number_at(p, width);
    if (count > (m->size - width) / width) return false;
    for (uint64_t i = 1; i <= count; i++) {
        uint64_t place = new_place(a, number_at(p + i * width, width));
        if (width == 4 && place > UINT32_MAX) return false;
        uint8_t big[8];
        for (unsigned k = 0; k < width; k++) big[k] = (uint8_t)(place >> 8 * (width - 1 - k));
        inl_bytes_set(out, m->now + HEAD + i * width, big, width);
    }
    return true;
}

static inl_status put_object(archive *a, member *m, const object_options *options,
                             void (*each)(void *arg, const char *member, const object_report *), void *arg,
                             inl_bytes *out, inl_error *e)
{
    const uint8_t *bytes = a->bytes + m->begin;
    inl_bytes made = {0};
    object_report report = {0};
    char name[600];
    snprintf(name, sizeof name, "%.300s(%s)", a->path, m->name);
    inl_status st = object_instrument(bytes, m->size, name, options, &made, &report, e);
    if (!st) put_member(a, m, made.data, made.size, out);
    if (!st) each(arg, name, &report);
    object_report_free(&report);
    inl_bytes_free(&made);
    return st;
}

/* Go's objects are archives whose members are of a form of its own, and its code moves its stacks. */
static bool is_go(const archive *a)
{
    static const char head[] = "go object ";
    const member *m = a->members;
    return a->count && m->size >= sizeof head && memcmp(a->bytes + m->begin, head, sizeof head - 1) == 0;
}

inl_status object_archive(const void *bytes, size_t size, const char *path, const object_options *options,
                          void (*each)(void *arg, const char *member, const object_report *), void *arg, inl_bytes *out,
                          inl_error *e)
{
    archive a = {.bytes = bytes, .size = size, .path = path};
    if (size >= MAGIC && memcmp(bytes, thin, MAGIC) == 0)
        return inl_fail(e, INL_ERR_UNSUPPORTED, "%s: a thin archive, which holds no objects: instrument these", path);
    inl_status st = read_members(&a, e);
    if (!st && is_go(&a))
        st = inl_fail(e, INL_ERR_UNSUPPORTED, "%s: Go's own form of objects is not handled (its programs: inlay trace)",
                      path);
    inl_bytes_put(out, bytes, MAGIC);
    for (size_t i = 0; i < a.count && !st; i++) {
        member *m = &a.members[i];
        const uint8_t *p = a.bytes + m->begin;
        bool object = !is_special(m) && !is_wide(m) && m->size >= 4 &&
                      (!memcmp(p, "\177ELF", 4) || !memcmp(p, "BC\xc0\xde", 4));
        m->now = out->size;
        if (object) st = put_object(&a, m, options, each, arg, out, e);
        else put_member(&a, m, p, m->size, out);
    }
    for (size_t i = 0; i < a.count && !st; i++) {
        const member *m = &a.members[i];
        bool table = strcmp(m->name, "/") == 0 || is_wide(m);
        if (table && !renumber(&a, m, out))
            st = inl_fail(e, INL_ERR_FORMAT, "%s: the archive's table of symbols makes no sense (ranlib makes it anew)",
                          path);
    }
    if (!st && out->failed) st = inl_fail(e, INL_ERR_NO_MEMORY, "%s: out of memory", path);
    free(a.members);
    return st;
}
