/* Checks at run time, each with a text that says what does not hold.
 *
 *     INL_CHECK(at <= end, "code of %#lx runs past its room", (long)app);
 *
 * INL_CHECK stands where it costs next to nothing and is there in every build; what it looks at has no side effect.
 * Walks of whole structures are for `--debug`: `if (inl_debug) ...`. What does not hold is a mistake of Inlay's own,
 * and going on would make it the program's: the text goes to inl_log_fd, then the process dies by SIGABRT. Usable at
 * any time, in signal handlers too. */
#ifndef INL_BASE_CHECK_H
#define INL_BASE_CHECK_H

#include <stdbool.h>

/* Of the process, set once at its start, before there are other threads: like the mask of the log. */
extern bool inl_debug;

void inl_check_failed(const char *file, int line, const char *fmt, ...)
    __attribute__((noreturn, cold, format(printf, 3, 4)));

#define INL_CHECK(holds, ...)                                                                                          \
    do {                                                                                                               \
        if (__builtin_expect(!(holds), 0)) inl_check_failed(__FILE_NAME__, __LINE__, __VA_ARGS__);                     \
    } while (0)

#endif
