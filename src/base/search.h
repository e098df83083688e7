/* The one binary search: in whatever is sorted, by whatever tells the two sides apart.
 *
 *     size_t i = INL_FIRST(count, k, ranges[k].high > address);
 *
 * is the first of 0 ... count - 1 for which the expression holds, `count` when it holds for none. It must be false up
 * to some index and true from there on. The expression is evaluated for about log2(count) values of k and may name
 * anything in sight but `inl_low_` and `inl_high_`. Works where no library function may be called. */
#ifndef INL_BASE_SEARCH_H
#define INL_BASE_SEARCH_H

#include <stddef.h>

#define INL_FIRST(count, k, holds)                                                                                     \
    __extension__({                                                                                                    \
        size_t inl_low_ = 0, inl_high_ = (count);                                                                      \
        while (inl_low_ < inl_high_) {                                                                                 \
            size_t k = inl_low_ + (inl_high_ - inl_low_) / 2;                                                          \
            if (holds) inl_high_ = k;                                                                                  \
            else inl_low_ = k + 1;                                                                                     \
        }                                                                                                              \
        inl_low_;                                                                                                      \
    })

#endif
