/* The cheapest way to put what is left of a job: nodes that it fills, and one at most that it fills in part, by dynamic programming
 * over classes of nodes, at prices that say what the cores are worth to the others. */
#ifndef RM_POLICIES_DISTRIB_FILLING_H
#define RM_POLICIES_DISTRIB_FILLING_H

#include "policies/distrib/fitting.h"

/* Nodes of one penalty with equally many free cores, as a job sees them. */
struct offer {
        uint32_t class, free_cores, count; /* class: of the shelf */
        double price; /* of filling one */
        bool banned; /* all of them are to be filled already */
};

/* So many nodes of an offer at once. */
struct bundle {
        uint32_t offer, nodes;
};

/* Fields are the interface: callers may list offers, and read what was chosen. */
struct filling {
        struct fitting *fitting;
        struct offer *offers; /* as many as there are classes */
        uint32_t n_offers, n_used; /* used: those looked at */
        struct bundle *bundles;
        uint32_t n_bundles, max_bundles;
        float *least, *next; /* each number of ranks */
        uint8_t *taken; /* bundles x (ranks + 1) */
        size_t taken_bytes;
        uint32_t *trace; /* each offer: nodes filled */
};

/* The fitting is borrowed. False: no memory; filling_finish() is fine after it. */
bool filling_init(struct filling *filling, struct fitting *fitting);
void filling_finish(struct filling *filling);

/* What filling one node of the class costs the job and takes from the others. */
double filling_price(const struct fitting *fitting, const struct fit_job *job, uint32_t class);

/* The best way to put `left` ranks of the job by the offers that are used: `trace` has nodes filled. Returns the offer of a node that is
 * filled in part and *ret_part, how many ranks are on that; n_offers and 0: there is none. -ENOSPC: no way was found. -ENOMEM. */
int filling_choose(struct filling *filling, const struct fit_job *job, uint32_t *ret_part);

/* Puts what is left of the job, beside what it has. -ENOSPC: no way was found. -ENOMEM. */
int filling_put_left(struct filling *filling, struct fit_job *job);

/* Puts all of it. The same errors; the job may have any pieces then. */
int filling_put(struct filling *filling, struct fit_job *job);

/* Takes the jobs out and puts them anew, in that order; the first one by `wanted`, which must be for all its ranks then, unless
 * n_wanted is 0. As before when that is dearer or not possible: 0, too. -ENOMEM. */
int filling_put_anew(struct filling *filling, struct fit_job *jobs[], uint32_t n, const struct fit_piece *wanted,
                     uint32_t n_wanted);

#endif
