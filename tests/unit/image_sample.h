/* Small programs that the image tests build in a folder of their own, and other tools' answers. */
#ifndef TESTS_IMAGE_SAMPLE_H
#define TESTS_IMAGE_SAMPLE_H

#include "image/image.h"

#include <stdio.h>

/* `name` inside the test's folder, which is removed when the test program ends; valid until the
 * sixteenth next call. */
const char *sample_path(const char *name);
/* Runs a shell command; true when it succeeds. "%s" arguments are put in as they are. */
bool sample_shell(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* The output of a shell command, to be closed with pclose. */
FILE *sample_output(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Writes `source` to NAME.SUFFIX in the folder and compiles it to NAME; fails the test otherwise. */
const char *sample_build(const char *compiler, const char *name, const char *suffix, const char *source,
                         const char *flags);
/* image_open that fails the test. */
image *sample_open(const char *path);
/* Whether `name` is the procedure's name or an alias of it. */
bool sample_has_name(const image_proc *p, const char *name);

extern const char sample_c[]; /* a C program with a few functions, on several lines */

#endif
