/* Where a tool's result goes: -o FILE or standard error, as text or JSON.
 *
 * With several processes (fork, exec) each writes its own report: the first process launched to FILE,
 * others to FILE.<pid>; where a process has lost the right to make files there, at the end of FILE. A
 * program that execs another in its own process is replaced without a report; what it has written to
 * the stream stays, and the new program's follows. */
#ifndef INLAY_OUTPUT_H
#define INLAY_OUTPUT_H

#include <inlay/types.h>

#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The stream, opened out of the program's reach, flushed and closed after the exit callbacks. */
FILE *inlay_out(void);
bool inlay_format_is_json(void);
/* Writes raw bytes to the output (binary traces), in one piece, from any thread. False: failed,
 * already reported. */
bool inlay_write(const void *bytes, size_t size);

/* In main, before inlay_start: what analysis code prints with the tool's own stdio to standard output
 * goes where the program's standard output went when it started, instead of standard error. The
 * descriptor stays open, out of the program's reach, until the program ends. */
void inlay_use_stdout(void);

/* JSON made easy: values go out in order, commas and nesting are looked after. key is NULL inside
 * arrays. Strings are escaped. */
void inlay_json_begin(const char *key, char open /* '{' or '[' */);
void inlay_json_end(void);
void inlay_json_uint(const char *key, uint64_t value);
void inlay_json_real(const char *key, double value);
void inlay_json_string(const char *key, const char *value); /* NULL: null */
void inlay_json_bool(const char *key, bool value);
/* From now on each whole object is a line of its own: where there may be several, one behind the other. */
void inlay_json_one_line(void);

#ifdef __cplusplus
}
#endif

#endif
