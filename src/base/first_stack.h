/* The first stack of a program, as the kernel makes it:
 *
 *     sp      argc
 *             argv[0] ... 0
 *             envp[0] ... 0
 *             auxiliary vector, ended by AT_NULL
 *             16 random bytes (AT_RANDOM), the platform's name (AT_PLATFORM)
 *             the strings of argv, those of envp, the file's name (AT_EXECFN)
 *     top     8 zero bytes in front of it
 *
 * It is built in memory of the caller's, who may put it elsewhere: into another process. Freestanding: the boot code of
 * rewritten programs, which has no library, is linked with it too. */
#ifndef INL_BASE_FIRST_STACK_H
#define INL_BASE_FIRST_STACK_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { INL_STACK_RANDOM = 16, INL_STACK_CHANGES = 6 };

typedef struct inl_first_stack {
    uint64_t top;                          /* it ends here */
    const char *const *argv, *const *envp; /* each ended by NULL */
    const char *name;                      /* of the file */
    const char *platform;                  /* NULL: what auxv says */
    uint8_t random[INL_STACK_RANDOM];
    const Elf64_auxv_t *auxv;                /* of somebody else, ended by AT_NULL, in which */
    Elf64_auxv_t changes[INL_STACK_CHANGES]; /* these are replaced, as far as they are there */
    size_t change_count;
} inl_first_stack;

/* The changes that describe an image at `base`, which no interpreter loads. */
void inl_first_stack_image(inl_first_stack *, const Elf64_Ehdr *, uint64_t base);
/* Where it begins, a multiple of 16: it needs [sp, top). */
uint64_t inl_first_stack_sp(const inl_first_stack *);
/* Writes it to `to`, which stands for [sp, top). */
void inl_first_stack_build(const inl_first_stack *, void *to);

/* --- the environment of a tool --- */
/* Settings meant for the program's C library, which the tool's must not read; and what that one is told. */
bool inl_environment_is_private(const char *variable);
extern const char inl_environment_tunables[];
/* Those of `envp` that a tool gets, ended by NULL, into room for all of them and two more. */
void inl_environment_of_tool(const char *const *envp, const char **to);

#endif
