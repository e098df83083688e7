/* A program to be planned: says what instructions and texts of snippets its arguments are. Where the tests' own code is
 * several times as large as this, as under the sanitizers, they plan it instead. It is never run. */
#include "isa/isa.h"
#include "snippet/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void decode(const isa *isa, const char *bytes)
{
    isa_insn in;
    isa_effects fx;
    if (isa->decode((const uint8_t *)bytes, strlen(bytes), 0, &in) > ISA_UNKNOWN) return;
    isa->effects(&in, &fx);
    printf("%u bytes, reads %#lx\n", in.len, (unsigned long)fx.reads);
}

static void *alloc(void *arg, size_t bytes)
{
    (void)arg;
    return calloc(1, bytes);
}

static void parse(const char *text)
{
    snippet_maker maker = {.alloc = alloc};
    const snippet_names nobody = {0};
    if (!snippet_parse(&maker, &nobody, text)) puts(maker.why);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        decode(&isa_x86_64, argv[i]);
        decode(&isa_aarch64, argv[i]);
        parse(argv[i]);
    }
    return 0;
}
