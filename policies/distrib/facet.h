/*
 * Cuts for one job: what the linear program over patterns gives it, how many groups on which nodes, may be no mixture of ways to
 * place the job. An inequality that all ways keep and the program does not is found by a small linear program over the ways; its
 * right side is then computed in whole numbers.
 */
#ifndef RM_POLICIES_DISTRIB_FACET_H
#define RM_POLICIES_DISTRIB_FACET_H

#include <stdbool.h>
#include <stdint.h>

#include "policies/distrib/problem.h"

enum {
        FACET_UNIT = 4096,
        FACET_MOST = 8 * FACET_UNIT, /* no value is larger, or lower than its negative */
};

struct facets;

/* `stride`: more than any node can hold. `low`, `high`: each cell, how many groups may be there; borrowed, as the problem is.
 * NULL: no memory. */
struct facets *facets_create(const struct problem *problem, uint32_t stride, const uint16_t *low, const uint16_t *high);

/* The ranges have become narrower. */
void facets_narrow(struct facets *facets);
void facets_destroy(struct facets *facets); /* NULL ok */

/* A cut: for each way, the sum over nodes of what ret_values (n_nodes x stride) says for the number of groups there is at least
 * *ret_least, all in 1 / FACET_UNIT. */

/* That `shares` (by nodes and groups) does not keep. False: none is far from being kept. */
bool facets_find(struct facets *facets, uint32_t job, const double *shares, int32_t *ret_values, int64_t *ret_least);

/* By what the job costs in all its cells, as prices are; INFINITY: never there. */
bool facets_import(struct facets *facets, uint32_t job, const double *costs, int32_t *ret_values, int64_t *ret_least);

#endif
