/* How many nodes a job needs at least, nodes weighed in several ways: what a linear program that gives jobs parts of nodes does
 * not see. */
#ifndef RM_POLICIES_DISTRIB_COVER_H
#define RM_POLICIES_DISTRIB_COVER_H

#include <stdint.h>

#include "policies/distrib/problem.h"

struct covers;

/* Nodes that hold the job weigh at least `low` together. */
struct cover {
        uint32_t low;
        uint8_t *weight; /* each node */
};

/* `high`: each cell, how many groups may be there. NULL: no memory. The problem is borrowed. */
struct covers *covers_create(const struct problem *problem, const uint16_t *high);
void covers_destroy(struct covers *covers); /* NULL ok */

/* `used`: each cell, how much the job is on the node. The cover that is farthest from being kept, NULL: none is. */
const struct cover *covers_find(const struct covers *covers, uint32_t job, const double *used);

#endif
