/* Routines of the user's at entries and exits (inlay/trace.h), where what this is linked with has some: the tool that
 * `inlay cc --trace` makes, a program with instrumented objects.
 *
 * What they store are events whose numbers stand before those of --event. */
#include "trace.h"

#include <inlay/trace.h>

#include <string.h>

#pragma weak inlay_trace_enter
#pragma weak inlay_trace_exit
#pragma weak inlay_trace_names

bool trace_routine_is_there(bool leaves) { return leaves ? inlay_trace_exit != NULL : inlay_trace_enter != NULL; }

unsigned trace_routine_values(void)
{
    const char *const *names = inlay_trace_names;
    unsigned n = 0;
    while (names && n < INLAY_TRACE_VALUES_MOST && names[n]) n++;
    return n;
}

bool trace_routine_agrees(void)
{
    const char *const *names = inlay_trace_names;
    unsigned n = trace_routine_values();
    if (n == INLAY_TRACE_VALUES_MOST && names[n]) {
        inlay_warn("inlay_trace_names has more than %u names, or no NULL at its end", n);
        return false;
    }
    if (n && !inlay_trace_enter && !inlay_trace_exit) {
        inlay_warn("inlay_trace_names has names, and neither inlay_trace_enter nor inlay_trace_exit is there");
        return false;
    }
    return true;
}

void trace_routine_begin(void)
{
    const char *const *names = inlay_trace_names;
    const trace_cost none = {0};
    for (unsigned k = 0; k < trace_routine_values(); k++)
        trace_note_event(k, INLAY_TRACE_BY_ROUTINE, &none, names[k], NULL);
}

void trace_routine_call(bool leaves, const inlay_trace_at *at)
{
    if (leaves) inlay_trace_exit(at);
    else inlay_trace_enter(at);
}
