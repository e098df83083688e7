/* The program's memory, read and written without a fault where nothing is mapped: what a system call's arguments, a
 * register or an argument points to.
 *
 *     char path[4096];
 *     if (call->number == inlay_syscall_number("openat") && inlay_memory_string(path, call->args[1], sizeof path) >= 0)
 *         ...
 *
 * Addresses are those that the program uses. In a rewritten program these are not the ones that the tool is shown of
 * images (image.h): inlay_address_real tells where something of an image lies now. While a program is rewritten there
 * is nothing to write to, and to read only what the files of the images hold, by the addresses that are shown. */
#ifndef INLAY_MEMORY_H
#define INLAY_MEMORY_H

#include <inlay/types.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many bytes were copied: fewer where the rest is not mapped, or may not be read. */
size_t inlay_memory_read(void *to, uint64_t from, size_t bytes);
/* Likewise: what may not be written, and what is Inlay's own, stays as it is. Code that is written to is met anew by
 * engines that run it from copies (jit), also what a callback is just being shown; in a rewritten program what has been
 * moved does not change. */
size_t inlay_memory_write(uint64_t to, const void *from, size_t bytes);
/* A string, cut where it does not fit in `size` bytes, with a zero at its end always. Its length in `out`, or -1 and
 * nothing where it leads to no memory before it ends. */
long inlay_memory_string(char *out, uint64_t from, size_t size);

#ifdef __cplusplus
}
#endif

#endif
