/* Numbers that look random, the same in every run: xorshift (Marsaglia 2003). */
#ifndef RM_POLICIES_DISTRIB_RNG_H
#define RM_POLICIES_DISTRIB_RNG_H

#include <stdint.h>

/* The first state of `random`; other small seeds may be added. It must not be 0. */
#define RNG_BEGIN UINT64_C(88172645463325252)

/* 0 .. n - 1. */
static inline uint32_t rng_below(uint64_t *random, uint32_t n) {
        *random ^= *random << 13;
        *random ^= *random >> 7;
        *random ^= *random << 17;
        return (uint32_t) (((*random >> 32) * n) >> 32);
}

#endif
