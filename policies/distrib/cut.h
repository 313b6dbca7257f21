/*
 * A job cut into pieces, each at a price: the least that any number of its ranks costs. In as few
 * bits as hold the prices, since these loops are most of what bounds of large problems take.
 *
 *      CUT_DEFINE(name, type, most) defines
 *      static void name(type *least, uint32_t ranks, const type *price, uint32_t largest)
 *
 * least[m], for m up to `ranks`: the least of all sums of price[x], 1 <= x <= largest, over pieces
 * that are m ranks together. `most` is more than any of them. They are made to be vectorised.
 */
#ifndef RM_POLICIES_DISTRIB_CUT_H
#define RM_POLICIES_DISTRIB_CUT_H

#include <stddef.h>
#include <stdint.h>

#include "policies/distrib/vectorised.h"

#define CUT_DEFINE(name, type, most)                                                                                               \
        VECTORISED static void name(type *least, uint32_t ranks, const type *price, uint32_t largest) {                            \
                least[0] = 0;                                                                                                      \
                for (uint32_t m = 1; m <= ranks; m++)                                                                              \
                        least[m] = (most);                                                                                         \
                for (uint32_t m = 0; m < ranks; m++) {                                                                             \
                        uint32_t n = ranks - m < largest ? ranks - m : largest;                                                    \
                        type base = least[m];                                                                                      \
                        type *restrict to = least + m;                                                                             \
                                                                                                                                   \
                        for (size_t x = 1; x <= n; x++) {                                                                          \
                                type sum = base + price[x];                                                                        \
                                                                                                                                   \
                                to[x] = sum < to[x] ? sum : to[x];                                                                 \
                        }                                                                                                          \
                }                                                                                                                  \
        }

#endif
