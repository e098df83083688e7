/* A growing array of one element type, for host-side and translation-time code.
 *
 *     INL_VEC(uint64_t) v = {0};
 *     if (!inl_vec_push(&v, 42)) ...out of memory...
 *     for (size_t i = 0; i < v.count; i++) use(v.items[i]);
 *     inl_vec_free(&v);
 */
#ifndef INL_BASE_VEC_H
#define INL_BASE_VEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#define INL_VEC(T)                                                                                                     \
    struct {                                                                                                           \
        T *items;                                                                                                      \
        size_t count, capacity;                                                                                        \
    }

bool inl_vec_reserve_(void **items, size_t *capacity, size_t wanted, size_t item_size);

#define inl_vec_reserve(v, n) inl_vec_reserve_((void **)&(v)->items, &(v)->capacity, (n), sizeof *(v)->items)
#define inl_vec_push(v, ...)                                                                                           \
    ((v)->count < (v)->capacity || inl_vec_reserve((v), (v)->count + 1)                                                \
         ? ((v)->items[(v)->count++] = (__VA_ARGS__), true)                                                            \
         : false)
#define inl_vec_free(v) (free((v)->items), (v)->items = NULL, (v)->count = (v)->capacity = 0)

#endif
