/* The folder of what is kept from run to run, translations (jit/kept.c) and analyses (cfg/kept.h): where it is, whose
 * it is, and how large it becomes.
 *
 * It is $INLAY_CACHE, or inlay in $XDG_CACHE_HOME or ~/.cache, and used only when it is a folder (no link) of this
 * user's own which nobody else may enter, and its files likewise. Whatever is amiss with it, everything goes on
 * without. A file is written under a name of its own and then renamed: who opens one sees all of it, and it never
 * changes. */
#ifndef INL_RUN_KEPT_FOLDER_H
#define INL_RUN_KEPT_FOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KEPT_FOLDER_MOST (512ull << 20) /* bytes of all files */
enum { KEPT_NAME = 33 };                /* 128 bits in hexadecimal */

/* Where files are, by the environment; `parent` of the folder that may be missing too, or empty. False: nowhere. */
bool kept_folder_name(char *path, char *parent, size_t size);
/* Is it a folder that is this user's own, which nobody else may enter? */
bool kept_folder_is_private(int fd);
/* The folder, made if it is not there. -1: there is none that can be used. */
int kept_folder_open(void);

/* The name of the file for a key. */
void kept_name(const char *key, char name[KEPT_NAME]);
bool kept_folder_has(const char *name); /* is it the name of a file there, or of one in the making? */
/* Where files there are larger than `limit` in all, the oldest go. */
void kept_folder_trim(int folder, uint64_t limit);

/* A whole file, to be freed; NULL: there is none that is this user's own. */
void *kept_folder_take(int folder, const char *name, size_t *size);
/* Puts a whole file there. False: it is too large, or cannot be written. */
bool kept_folder_put(int folder, const char *name, const void *bytes, size_t size);

#endif
