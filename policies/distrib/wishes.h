/*
 * Where jobs would rather be: by how much a plan is dearer than the bound, at the best prices of the pieces, when a job has any of its
 * ranks on a node (reduced costs). No plan that costs less than a job loses now gives it a node that loses as much.
 */
#ifndef RM_POLICIES_DISTRIB_WISHES_H
#define RM_POLICIES_DISTRIB_WISHES_H

#include "policies/distrib/pieces.h"
#include "policies/distrib/roster.h"

/* A node of the class, and what is lost by it at least: below 0 where that counts the job twice on it. */
struct wish {
        uint32_t class;
        float loss;
};

/* Fields are the interface, to be read only. */
struct wishes {
        const struct relaxation *classes;
        struct wish *wishes; /* of each demand, the least loss first */
        size_t *first; /* each demand, in wishes; one more */
        double *ideal; /* each demand: what it pays at least */
        struct roster roster;
        struct arena arena;
};

/* For all jobs of the pieces, of which prices change no more. The relaxation of the pieces is borrowed. NULL: no memory, more than
 * this is made for, or it would take longer than `usec`. */
struct wishes *wishes_create(struct pieces *pieces, const struct rm_snapshot *snapshot, int64_t usec);
void wishes_destroy(struct wishes *wishes); /* NULL ok */

#endif
