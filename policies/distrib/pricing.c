#include "policies/distrib/pricing.h"

#include <string.h>

#include "policies/distrib/vectorised.h"

bool pricing_init(struct pricing *pricing, const struct problem *problem) {
        size_t jobs = problem->n_jobs, cells = jobs * problem->n_nodes;

        *pricing = (struct pricing) { .problem = problem, .stride = 1 };
        for (uint32_t s = 0; s < problem->n_nodes; s++)
                if (problem->nodes[s].capacity >= pricing->stride)
                        pricing->stride = problem->nodes[s].capacity + 1;
        pricing->low = arena_alloc(&pricing->arena, cells, sizeof(*pricing->low));
        pricing->high = arena_alloc(&pricing->arena, cells, sizeof(*pricing->high));
        pricing->job_price = arena_alloc(&pricing->arena, jobs, sizeof(*pricing->job_price));
        pricing->use_price = arena_alloc(&pricing->arena, cells, sizeof(*pricing->use_price));
        pricing->before = arena_alloc(&pricing->arena, (jobs + 1) * pricing->stride, sizeof(*pricing->before));
        pricing->after = arena_alloc(&pricing->arena, (jobs + 1) * pricing->stride, sizeof(*pricing->after));
        pricing->cost = arena_alloc(&pricing->arena, jobs * pricing->stride, sizeof(*pricing->cost));
        return !pricing->arena.failed;
}

void pricing_finish(struct pricing *pricing) {
        arena_finish(&pricing->arena);
}

/* Costs of all values in the range. False: the range is empty. */
static bool list_costs(struct pricing *pricing, uint32_t j, uint32_t s) {
        size_t cell = (size_t) j * pricing->problem->n_nodes + s;
        const int64_t *price = pricing->problem->prices + pricing->problem->cells[cell].first;
        int64_t *cost = pricing->cost + (size_t) j * pricing->stride;
        uint32_t high = pricing->high[cell];

        if (high > pricing->problem->nodes[s].capacity)
                high = pricing->problem->nodes[s].capacity;
        for (uint32_t v = pricing->low[cell]; v <= high; v++)
                cost[v] = price[v] * ((int64_t) 1 << PRICING_SHIFT) - v * pricing->job_price[j] -
                          (v > 0 ? pricing->use_price[cell] : 0);
        return pricing->low[cell] <= high;
}

VECTORISED static void offer(int64_t *restrict to, const int64_t *restrict from, uint32_t n, int64_t cost) {
        for (uint32_t i = 0; i < n; i++) {
                int64_t sum = from[i] + cost;

                to[i] = sum < to[i] ? sum : to[i];
        }
}

/* to[c] = the least of from[c - v] + what v costs. What is dearer than fewer groups need not be
 * looked at. */
static void add_job(const struct pricing *pricing, uint32_t j, uint32_t s, const int64_t *from, int64_t *to) {
        size_t cell = (size_t) j * pricing->problem->n_nodes + s;
        uint32_t capacity = pricing->problem->nodes[s].capacity, low = pricing->low[cell], high = pricing->high[cell];
        const int64_t *cost = pricing->cost + (size_t) j * pricing->stride;
        int64_t least = cost[low];

        high = high < capacity ? high : capacity;
        for (uint32_t c = 0; c < low; c++)
                to[c] = PRICING_NEVER * 2;
        for (uint32_t c = low; c <= capacity; c++)
                to[c] = from[c - low] + least;
        for (uint32_t v = low + 1; v <= high; v++)
                if (cost[v] < least) {
                        least = cost[v];
                        offer(to + v, from, capacity + 1 - v, cost[v]);
                }
}

int64_t pricing_best(struct pricing *pricing, uint32_t node, uint16_t *ret_amount) {
        uint32_t jobs = pricing->problem->n_jobs, capacity = pricing->problem->nodes[node].capacity, left = capacity;
        int64_t *before = pricing->before;

        memset(before, 0, sizeof(*before) * (capacity + 1));
        for (uint32_t j = 0; j < jobs; j++) {
                if (!list_costs(pricing, j, node))
                        return PRICING_NEVER;
                add_job(pricing, j, node, before, before + pricing->stride);
                before += pricing->stride;
        }
        if (before[capacity] >= PRICING_NEVER)
                return PRICING_NEVER;
        for (uint32_t j = jobs; j-- > 0;) {
                const int64_t *cost = pricing->cost + (size_t) j * pricing->stride, *from = before - pricing->stride;
                uint32_t v = pricing->low[(size_t) j * pricing->problem->n_nodes + node];

                while (from[left - v] + cost[v] != before[left])
                        v++;
                ret_amount[j] = (uint16_t) v;
                left -= v;
                before -= pricing->stride;
        }
        return pricing->before[(size_t) jobs * pricing->stride + capacity];
}

/* The least that a pattern costs with `v` groups of the job. */
static int64_t marginal(const struct pricing *pricing, uint32_t j, uint32_t capacity, uint32_t v) {
        const int64_t *before = pricing->before + (size_t) j * pricing->stride;
        const int64_t *after = pricing->after + (size_t) (j + 1) * pricing->stride;
        int64_t least = PRICING_NEVER;

        for (uint32_t c = 0; c + v <= capacity; c++) {
                int64_t sum = before[c] + after[capacity - v - c];

                least = sum < least ? sum : least;
        }
        return least + pricing->cost[(size_t) j * pricing->stride + v];
}

uint32_t pricing_narrow(struct pricing *pricing, uint32_t node, int64_t most) {
        uint32_t jobs = pricing->problem->n_jobs, capacity = pricing->problem->nodes[node].capacity, changed = 0;

        memset(pricing->before, 0, sizeof(*pricing->before) * (capacity + 1));
        memset(pricing->after + (size_t) jobs * pricing->stride, 0, sizeof(*pricing->after) * (capacity + 1));
        for (uint32_t j = 0; j < jobs; j++) {
                if (!list_costs(pricing, j, node))
                        return 0;
                add_job(pricing, j, node, pricing->before + (size_t) j * pricing->stride,
                        pricing->before + (size_t) (j + 1) * pricing->stride);
        }
        for (uint32_t j = jobs; j-- > 0;)
                add_job(pricing, j, node, pricing->after + (size_t) (j + 1) * pricing->stride,
                        pricing->after + (size_t) j * pricing->stride);
        for (uint32_t j = 0; j < jobs; j++) {
                size_t cell = (size_t) j * pricing->problem->n_nodes + node;
                uint16_t low = pricing->low[cell], high = pricing->high[cell];

                high = high < capacity ? high : (uint16_t) capacity;
                while (low < high && marginal(pricing, j, capacity, high) > most)
                        high--;
                while (low < high && marginal(pricing, j, capacity, low) > most)
                        low++;
                changed += low != pricing->low[cell] || high != pricing->high[cell];
                pricing->low[cell] = low;
                pricing->high[cell] = high;
        }
        return changed;
}
