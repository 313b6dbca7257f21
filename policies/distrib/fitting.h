/* A large plan under repair: jobs are taken out and put back, and who is where is known. Jobs with limits, groups of several ranks, or
 * that run already, stay as they are. */
#ifndef RM_POLICIES_DISTRIB_FITTING_H
#define RM_POLICIES_DISTRIB_FITTING_H

#include <stdbool.h>

#include "placement/relaxation.h"
#include "placement/shelf.h"
#include "policies/distrib/arena.h"
#include "policies/distrib/pieces.h"

struct fit_piece {
        uint32_t node, ranks;
};

struct fit_job {
        uint32_t index; /* in the snapshot */
        uint32_t ranks, n_pieces;
        uint32_t left; /* ranks that are nowhere yet, while it is put */
        int64_t priority, cost;
        double paid; /* the cost, and what the cores were worth when it was put */
        struct fit_piece *pieces, *old_pieces; /* room for `ranks` */
        uint32_t n_old_pieces;
        int64_t old_cost;
        double old_paid;
};

/* Fields are the interface, to be read only but `random`, and jobs by who puts them. */
struct fitting {
        const struct rm_snapshot *snapshot;
        int64_t weight;
        struct shelf shelf; /* by what is free now */
        double *worth; /* each class of the shelf: what such a node is worth to other jobs */
        struct fit_job *jobs; /* highest priority first */
        uint32_t n_jobs, most_ranks;
        uint32_t *tenants; /* by node: jobs that have pieces there, */
        size_t *first_tenant; /* each node, in tenants, */
        uint32_t *n_tenants; /* and how many */
        int64_t gain; /* since the beginning */
        uint64_t random;
        struct arena arena;
};

/* Begins at `plan`, which must be valid. The snapshot is borrowed. False: no memory, or there is nothing to do. fitting_finish() is fine
 * after it. `seed`: another one, other random numbers. */
bool fitting_init(struct fitting *fitting, const struct rm_snapshot *snapshot, const struct rm_plan *plan, uint64_t seed);
void fitting_finish(struct fitting *fitting);

/* What cores are worth from now on. */
void fitting_set_prices(struct fitting *fitting, const struct relaxation *relaxation);
void fitting_set_worth(struct fitting *fitting, const struct pieces *pieces);

/* All pieces of the job leave their nodes; the job has them still. */
void fitting_take_out(struct fitting *fitting, const struct fit_job *job);

/* One more piece, or a larger one where there is one. */
void fitting_add_piece(struct fitting *fitting, struct fit_job *job, uint32_t node, uint32_t ranks);

/* The job has all its pieces: what it costs and has paid. */
void fitting_settle(const struct fitting *fitting, struct fit_job *job);

/* The pieces it has, to go back to; the job must be taken out for that, and is put in again. */
void fitting_remember(struct fit_job *job);
void fitting_restore(struct fitting *fitting, struct fit_job *job);

void fitting_write(const struct fitting *fitting, struct rm_plan *plan);

#endif
