/* The one way a failure is told, everywhere in Inlay.
 *
 * A function that can fail returns `inl_status`: 0 (INL_OK) or a code of the list below, and fills
 * the `inl_error` it was handed (which may be NULL) with the text a person reads: what happened, to
 * which file, address or process, and what to do about it. Nothing below the cli prints or exits.
 */
#ifndef INL_BASE_ERROR_H
#define INL_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

typedef enum inl_status {
    INL_OK = 0,
    INL_ERR_NO_MEMORY,   /* memory or address space is used up */
    INL_ERR_NOT_FOUND,   /* a file, symbol or procedure that does not exist */
    INL_ERR_ACCESS,      /* permission denied, not executable, ptrace denied */
    INL_ERR_FORMAT,      /* a malformed or foreign file */
    INL_ERR_UNSUPPORTED, /* well-formed, but Inlay cannot do it */
    INL_ERR_USAGE,       /* the caller's mistake */
    INL_ERR_SYSTEM,      /* a system call failed for another reason */
    INL_ERR_RANGE,       /* an address or displacement out of reach */
} inl_status;

typedef struct inl_error {
    inl_status code;
    uint64_t address; /* 0 where none applies */
    char text[400];   /* one line, no newline at its end */
} inl_error;

/* Fills `e` (may be NULL) and returns `code`, so that `return inl_fail(...)` is the idiom. */
inl_status inl_fail(inl_error *e, inl_status code, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
inl_status inl_fail_at(inl_error *e, inl_status code, uint64_t address, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
