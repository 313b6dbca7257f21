#include "policies/distrib/factor.h"

#include "policies/distrib/vectorised.h"

/* The states from which a value leads into the window of the next ones: [ret_from, ret_from +
 * n). */
static inline uint32_t window(const struct factor_link *link, uint32_t x, uint32_t low, uint32_t high, uint32_t *ret_from) {
        uint32_t from = link->low, to = link->high;

        if (from + x < low)
                from = low - x;
        if (high < x)
                return 0;
        if (to > high - x)
                to = high - x;
        *ret_from = from;
        return from <= to ? to - from + 1 : 0;
}

static inline void lower(int32_t *restrict to, const int32_t *restrict from, uint32_t n, int32_t cost) {
        for (uint32_t i = 0; i < n; i++) {
                int32_t sum = from[i] + cost;

                to[i] = sum < to[i] ? sum : to[i];
        }
}

static inline int32_t meet(const int32_t *restrict a, const int32_t *restrict b, uint32_t n) {
        int32_t least = FACTOR_NEVER;

        for (uint32_t i = 0; i < n; i++) {
                int32_t sum = a[i] + b[i];

                least = sum < least ? sum : least;
        }
        return least;
}

static inline void clear(const struct factor_shape *shape, int32_t *state, uint32_t low, uint32_t high) {
        for (uint32_t y = 0; y < shape->layers; y++)
                for (uint32_t x = low; x <= high; x++)
                        state[y * shape->stride + x] = FACTOR_NEVER;
}

VECTORISED void factor_forward(const struct factor_shape *shape, const struct factor_link *link, const int32_t *state,
                               int32_t *next, uint32_t low, uint32_t high) {
        clear(shape, next, low, high);
        for (uint32_t i = 0; i < link->n; i++) {
                const struct factor_value *v = &link->values[i];
                uint32_t from = 0, n = window(link, v->x, low, high, &from);

                for (uint32_t y = 0, to; y < shape->layers && (to = factor_layer(shape, y, v->y)) < shape->layers; y++)
                        lower(next + to * shape->stride + from + v->x, state + y * shape->stride + from, n, v->cost);
        }
}

VECTORISED void factor_backward(const struct factor_shape *shape, const struct factor_link *link, const int32_t *next,
                                int32_t *state, uint32_t low, uint32_t high) {
        clear(shape, state, link->low, link->high);
        for (uint32_t i = 0; i < link->n; i++) {
                const struct factor_value *v = &link->values[i];
                uint32_t from = 0, n = window(link, v->x, low, high, &from);

                for (uint32_t y = 0, to; y < shape->layers && (to = factor_layer(shape, y, v->y)) < shape->layers; y++)
                        lower(state + y * shape->stride + from, next + to * shape->stride + from + v->x, n, v->cost);
        }
}

VECTORISED void factor_marginals(const struct factor_shape *shape, const struct factor_link *link, const int32_t *state,
                                 const int32_t *next, uint32_t low, uint32_t high, int32_t *ret_marginal) {
        for (uint32_t i = 0; i < link->n; i++) {
                const struct factor_value *v = &link->values[i];
                uint32_t from = 0, n = window(link, v->x, low, high, &from);
                int32_t least = FACTOR_NEVER;

                for (uint32_t y = 0, to; y < shape->layers && (to = factor_layer(shape, y, v->y)) < shape->layers; y++) {
                        int32_t here = meet(state + y * shape->stride + from, next + to * shape->stride + from + v->x, n);

                        least = here < least ? here : least;
                }
                ret_marginal[i] = least;
        }
}
