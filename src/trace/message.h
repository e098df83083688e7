/* Messages of protocol buffers, written: fields one after the other, each with its number and how it is written.
 *
 *     trace_message m = {0}, inner = {0};
 *     trace_message_number(&inner, 1, 42);
 *     trace_message_put(&m, 3, &inner);          an inner message, which is empty again then
 *     if (m.failed) ...out of memory...
 */
#ifndef INL_TRACE_MESSAGE_H
#define INL_TRACE_MESSAGE_H

#include "base/vec.h"

#include <stdint.h>

typedef struct trace_message {
    INL_VEC(uint8_t) bytes;
    bool failed;
} trace_message;

void trace_message_varint(trace_message *, uint64_t); /* bare: part of a packed field */
void trace_message_number(trace_message *, unsigned field, uint64_t);
void trace_message_real(trace_message *, unsigned field, double);
void trace_message_bytes(trace_message *, unsigned field, const void *, size_t);
void trace_message_text(trace_message *, unsigned field, const char *);
void trace_message_put(trace_message *, unsigned field, trace_message *inner);
void trace_message_free(trace_message *);

#endif
