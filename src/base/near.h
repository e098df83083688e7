/* Which of many names are spelled nearly as one that nobody knows: for messages. */
#ifndef INL_BASE_NEAR_H
#define INL_BASE_NEAR_H

#include <stddef.h>

enum { INL_NEAR_MOST = 3, INL_NEAR_LONGEST = 120 };
typedef struct inl_near {
    const char *wanted;
    size_t most;                                /* letters that may be wrong */
    char best[INL_NEAR_MOST][INL_NEAR_LONGEST]; /* the nearest first, each once */
    size_t distance[INL_NEAR_MOST];
    unsigned count;
} inl_near;

void inl_near_begin(inl_near *, const char *wanted);
void inl_near_offer(inl_near *, const char *name);
/* By another spelling of it; no longer ones than have room. */
void inl_near_offer_as(inl_near *, const char *spelled, const char *name);
/* "'malloc', 'calloc'"; "" where there is none. Answers `out`. */
const char *inl_near_text(const inl_near *, char *out, size_t size);

#endif
