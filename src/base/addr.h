/* Addresses of different worlds have different types, so that the compiler finds where they are mixed: the classic
 * mistake of this field. Each holds one number; 0 is "none" in all of them.
 *
 *     link_addr      as the linker placed it: what stands in the file, before a load bias
 *     assumed_addr   where code was when it was made, if it may be moved as a whole afterwards
 *     real_addr      of the program, in its process: what the program itself computes with
 *     cache_addr     of code that Inlay made, in the view that is executed
 *     remote_addr    in another process
 */
#ifndef INL_BASE_ADDR_H
#define INL_BASE_ADDR_H

#include <stdbool.h>
#include <stdint.h>

typedef struct {
    uint64_t at;
} link_addr;
typedef struct {
    uint64_t at;
} assumed_addr;
typedef struct {
    uint64_t at;
} real_addr;
typedef struct {
    uint64_t at;
} cache_addr;
typedef struct {
    uint64_t at;
} remote_addr;

/* What is loaded `bias` bytes above where it was linked. */
static inline real_addr inl_real(link_addr a, uint64_t bias) { return (real_addr){a.at + bias}; }
static inline link_addr inl_link(real_addr a, uint64_t bias) { return (link_addr){a.at - bias}; }

#endif
