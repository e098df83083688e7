/* Nanoseconds an instruction: Inlay's decode and effects beside Zydis, over one ELF file's code.
 *
 *     isa_decode [FILE [ROUNDS]]       default: the C library, best of 5
 *
 * All contenders walk the same instruction starts, found beforehand, so that none pays for another's
 * loss of synchronisation.
 */
#include <Zydis/Zydis.h>
#include <elf.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "isa/isa.h"

typedef struct code {
    const uint8_t *bytes;
    uint32_t *starts;
    size_t count, size;
    uint64_t addr;
} code;

static ZydisDecoder zydis, zydis_minimal;
static uint64_t sink; /* keeps the compiler from dropping the work */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1e9 + t.tv_nsec;
}

static void run_decode(const code *c)
{
    for (size_t i = 0; i < c->count; i++) {
        isa_insn in;
        isa_x86_64.decode(c->bytes + c->starts[i], c->size - c->starts[i], c->addr + c->starts[i], &in);
        sink += in.len;
    }
}

static void run_effects(const code *c)
{
    for (size_t i = 0; i < c->count; i++) {
        isa_insn in;
        isa_effects fx;
        isa_x86_64.decode(c->bytes + c->starts[i], c->size - c->starts[i], c->addr + c->starts[i], &in);
        isa_x86_64.effects(&in, &fx);
        sink += fx.reads + fx.flags_kill;
    }
}

static void run_zydis_minimal(const code *c)
{
    for (size_t i = 0; i < c->count; i++) {
        ZydisDecodedInstruction in;
        ZydisDecoderDecodeInstruction(&zydis_minimal, NULL, c->bytes + c->starts[i], c->size - c->starts[i], &in);
        sink += in.length;
    }
}

static void run_zydis_full(const code *c)
{
    for (size_t i = 0; i < c->count; i++) {
        ZydisDecodedInstruction in;
        ZydisDecodedOperand op[ZYDIS_MAX_OPERAND_COUNT];
        ZydisDecoderDecodeFull(&zydis, c->bytes + c->starts[i], c->size - c->starts[i], &in, op);
        sink += in.length;
    }
}

/* The largest executable section. */
static bool load(const char *path, code *c)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0) return false;
    const uint8_t *map = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
    close(fd);
    const Elf64_Ehdr *e = (const Elf64_Ehdr *)map;
    if (map == MAP_FAILED || memcmp(e->e_ident, ELFMAG, SELFMAG) || e->e_machine != EM_X86_64) return false;
    const Elf64_Shdr *s = (const Elf64_Shdr *)(map + e->e_shoff);
    for (unsigned i = 0; i < e->e_shnum; i++) {
        if (!(s[i].sh_flags & SHF_EXECINSTR) || s[i].sh_size <= c->size) continue;
        c->bytes = map + s[i].sh_offset;
        c->size = s[i].sh_size;
        c->addr = s[i].sh_addr;
    }
    c->starts = c->size ? malloc(c->size * sizeof *c->starts) : NULL;
    for (size_t at = 0; c->starts && at < c->size;) {
        isa_insn in;
        isa_result r = isa_x86_64.decode(c->bytes + at, c->size - at, c->addr + at, &in);
        if (r == ISA_OK) c->starts[c->count++] = at;
        at += r == ISA_OK ? in.len : 1;
    }
    return c->count != 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(const code *);
    } contenders[] = {{"inlay decode", run_decode},
                      {"inlay decode + effects", run_effects},
                      {"zydis minimal (length, mnemonic)", run_zydis_minimal},
                      {"zydis full", run_zydis_full}};
    enum { CONTENDERS = sizeof contenders / sizeof *contenders };
    const char *path = argc > 1 ? argv[1] : "/lib/x86_64-linux-gnu/libc.so.6";
    int rounds = argc > 2 ? atoi(argv[2]) : 5;
    double best[CONTENDERS];
    code c = {0};
    if (!load(path, &c)) {
        fprintf(stderr, "isa_decode: %s: no x86-64 ELF file with code\n", path);
        return 1;
    }
    ZydisDecoderInit(&zydis, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderInit(&zydis_minimal, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&zydis_minimal, ZYDIS_DECODER_MODE_MINIMAL, ZYAN_TRUE);
    printf("%s: %zu instructions\n", path, c.count);
    for (int r = 0; r < rounds; r++) {
        for (int i = 0; i < CONTENDERS; i++) {
            double start = now();
            contenders[i].run(&c);
            double ns = (now() - start) / c.count;
            if (!r || ns < best[i]) best[i] = ns;
        }
    }
    for (int i = 0; i < CONTENDERS; i++) printf("  %-34s %6.1f ns\n", contenders[i].name, best[i]);
    return sink == 0;
}
