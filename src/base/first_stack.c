#include "base/first_stack.h"

/* rseq stays the program's to register. One arena is enough: the runtime's work is serialised. */
const char inl_environment_tunables[] = "GLIBC_TUNABLES=glibc.pthread.rseq=0:glibc.malloc.arena_max=1";

typedef struct layout {
    size_t argc, envc, auxc; /* auxc: with AT_NULL */
    uint64_t strings, platform, random, sp;
} layout;

static size_t length(const char *s)
{
    size_t n = 0;
    while (s[n]) n++;
    return n;
}

static size_t strings_size(const char *const *list, size_t *count)
{
    size_t n = 0;
    for (*count = 0; list[*count]; ++*count) n += length(list[*count]) + 1;
    return n;
}

static layout lay_out(const inl_first_stack *s)
{
    layout l = {.auxc = 1};
    while (s->auxv[l.auxc - 1].a_type != AT_NULL) l.auxc++;
    size_t strings = strings_size(s->argv, &l.argc) + strings_size(s->envp, &l.envc) + length(s->name) + 1;
    l.strings = s->top - sizeof(uint64_t) - strings;
    l.platform = l.strings - (s->platform ? length(s->platform) + 1 : 0);
    l.random = (l.platform & ~(uint64_t)15) - INL_STACK_RANDOM;
    size_t words = 1 + l.argc + 1 + l.envc + 1 + 2 * l.auxc;
    l.sp = (l.random - words * sizeof(uint64_t)) & ~(uint64_t)15;
    return l;
}

uint64_t inl_first_stack_sp(const inl_first_stack *s) { return lay_out(s).sp; }

void inl_first_stack_image(inl_first_stack *s, const Elf64_Ehdr *h, uint64_t base)
{
    s->changes[0] = (Elf64_auxv_t){AT_PHDR, {base + h->e_phoff}};
    s->changes[1] = (Elf64_auxv_t){AT_PHNUM, {h->e_phnum}};
    s->changes[2] = (Elf64_auxv_t){AT_PHENT, {h->e_phentsize}};
    s->changes[3] = (Elf64_auxv_t){AT_ENTRY, {base + h->e_entry}};
    s->changes[4] = (Elf64_auxv_t){AT_BASE, {0}};
    s->changes[5] = (Elf64_auxv_t){AT_SECURE, {0}};
    s->change_count = 6;
}

/* --- building --- */

typedef struct builder {
    uint64_t *word;
    char *text;  /* the next string's place, */
    uint64_t at; /* and its address */
} builder;

static void put_bytes(uint8_t *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] = ((const uint8_t *)from)[i];
}

static uint64_t put_string(builder *b, const char *s)
{
    uint64_t at = b->at;
    size_t n = length(s) + 1;
    put_bytes((uint8_t *)b->text, s, n);
    b->text += n;
    b->at += n;
    return at;
}

static void put_strings(builder *b, const char *const *list)
{
    for (; *list; list++) *b->word++ = put_string(b, *list);
    *b->word++ = 0;
}

static uint64_t value_of(const inl_first_stack *s, const layout *l, const Elf64_auxv_t *a, uint64_t name)
{
    if (a->a_type == AT_RANDOM) return l->random;
    if (a->a_type == AT_EXECFN) return name;
    if (a->a_type == AT_PLATFORM && s->platform) return l->platform;
    for (size_t i = 0; i < s->change_count; i++)
        if (s->changes[i].a_type == a->a_type) return s->changes[i].a_un.a_val;
    return a->a_un.a_val;
}

void inl_first_stack_build(const inl_first_stack *s, void *to)
{
    layout l = lay_out(s);
    uint8_t *low = to;
    for (uint64_t i = 0; i < s->top - l.sp; i++) low[i] = 0;
    builder b = {to, (char *)low + (l.strings - l.sp), l.strings};
    *b.word++ = l.argc;
    put_strings(&b, s->argv);
    put_strings(&b, s->envp);
    uint64_t name = put_string(&b, s->name);
    for (size_t i = 0; i < l.auxc; i++) {
        *b.word++ = s->auxv[i].a_type;
        *b.word++ = value_of(s, &l, &s->auxv[i], name);
    }
    put_bytes(low + (l.random - l.sp), s->random, sizeof s->random);
    if (s->platform) put_bytes(low + (l.platform - l.sp), s->platform, length(s->platform) + 1);
}

/* --- the environment of a tool --- */

static bool starts(const char *s, const char *with)
{
    while (*with)
        if (*s++ != *with++) return false;
    return true;
}

bool inl_environment_is_private(const char *variable)
{
    return starts(variable, "GLIBC_TUNABLES=") || starts(variable, "LD_") || starts(variable, "MALLOC_");
}

void inl_environment_of_tool(const char *const *envp, const char **to)
{
    *to++ = inl_environment_tunables;
    for (; *envp; envp++)
        if (!inl_environment_is_private(*envp)) *to++ = *envp;
    *to = NULL;
}
