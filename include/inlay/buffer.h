/* Trace buffers: each thread fills its own; a callback empties it when full and at the thread's end.
 *
 *     buf = inlay_buffer_new(sizeof(record), 4096, full, NULL);
 *     inlay_insert(point, inlay_append(buf, INLAY_FIELD(8, inlay_pc()), INLAY_FIELD(8, ea), ...));
 *
 * Fields are packed in the order given and must fill the record exactly. */
#ifndef INLAY_BUFFER_H
#define INLAY_BUFFER_H

#include <inlay/snippet.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct inlay_buffer inlay_buffer;
typedef struct inlay_field {
    unsigned size;
    inlay_expr value;
} inlay_field;
#ifdef __cplusplus
#define INLAY_FIELD(bytes, expr) (inlay_field{(bytes), (expr)})
#else
#define INLAY_FIELD(bytes, expr) ((inlay_field){(bytes), (expr)})
#endif

/* At most 16 buffers a tool. The callback gets a thread's records in order; in that thread, but for those that other
 * threads have left when the process ends, which the one that ends it hands out (before the callbacks of the end).
 * inlay_local_now in it is always the owner's. A thread's last records come before the callbacks of its end. */
inlay_buffer *inlay_buffer_new(unsigned record_size, unsigned records,
                               void (*full)(const void *records, size_t count, unsigned thread_id, void *arg),
                               void *arg);
/* Records that stay where the tool wants them, in a mapped file, say, instead of being handed out. `next` gives a
 * thread the memory for its next records, at its first one and whenever what it has is full: `filled` with `count`
 * records in it, at first NULL and 0. It answers where, and in *room how many, at least one; NULL ends the tool. When
 * the thread ends, before the callbacks of its end, `room` is NULL, and so is the answer. It runs in that thread,
 * several at once, and is not called for what other threads have when the process ends: that lies where `next` has
 * said. A child of fork has no memory until it asks for some; records that a thread makes while the process ends are
 * still put there. */
inlay_buffer *inlay_buffer_fed(unsigned record_size,
                               void *(*next)(void *filled, size_t count, unsigned thread_id, size_t *room, void *arg),
                               void *arg);
inlay_expr inlay_append_array(inlay_buffer *, unsigned count, const inlay_field *fields);
#ifndef __cplusplus
#define inlay_append(buffer, ...)                                                                                      \
    inlay_append_array((buffer), sizeof((inlay_field[]){__VA_ARGS__}) / sizeof(inlay_field),                           \
                       (inlay_field[]){__VA_ARGS__})
#endif

#ifdef __cplusplus
}
template <typename... fields> static inline inlay_expr inlay_append(inlay_buffer *b, fields... f)
{
    const inlay_field list[] = {f...};
    return inlay_append_array(b, sizeof...(f), list);
}
#endif

#endif
