/* An auditor of libraries.c (LD_AUDIT): it is loaded before the program's own libraries, into a namespace of its own.
 */
#define _GNU_SOURCE
#include <link.h>
#include <stdint.h>

static int noted;
__attribute__((noinline)) int audit_note(int n) { return noted += n; }

unsigned la_version(unsigned version) { return version; }

unsigned la_objopen(struct link_map *m, Lmid_t space, uintptr_t *cookie)
{
    (void)cookie;
    audit_note(space == LM_ID_BASE && m->l_name ? 2 : 1);
    return LA_FLG_BINDTO | LA_FLG_BINDFROM;
}

uintptr_t la_symbind64(Elf64_Sym *s, unsigned index, uintptr_t *by, uintptr_t *of, unsigned *flags, const char *name)
{
    (void)index, (void)by, (void)of, (void)flags, (void)name;
    audit_note(1);
    return s->st_value;
}
