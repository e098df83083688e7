/* Arguments and results in uftrace's directory. Its `info` says once, by a procedure's name, what a record of it is
 * followed by ("parse@arg1/d32,arg2/s;..."); a bit of the record says that it is.
 *
 * Each name has one such list, that of the first call: a call with others, as of another procedure of that name, is
 * told without. */
#ifndef INL_TRACE_UFTRACE_VALUES_H
#define INL_TRACE_UFTRACE_VALUES_H

#include "trace/calls.h"

enum { UFTRACE_LIST_MOST = 512, UFTRACE_BYTES_MOST = 4096 };

typedef struct uftrace_values {
    const trace_session *s;
    INL_VEC(struct uftrace_list) lists; /* of arguments and of results */
    inl_map by_proc;                    /* index + 1, by number << 1 | is a result's */
    bool failed;
} uftrace_values;

/* How many bytes follow the record of this call; 0: none do. */
size_t uftrace_values_of(uftrace_values *, const trace_calls *, const trace_call *, bool is_exit,
                         uint8_t out[UFTRACE_BYTES_MOST]);
bool uftrace_values_has(const uftrace_values *, const char *name);
bool uftrace_values_any(const uftrace_values *, bool results);
void uftrace_values_put(FILE *, const uftrace_values *); /* lines of `info` */
void uftrace_values_free(uftrace_values *);

#endif
