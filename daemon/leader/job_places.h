/* The sets of nodes that a job has run on, and how many steps a second it did on each: nodes
 * differ, so a rate holds for those it was measured on. Pure. By it a job goes back to nodes that
 * it had to leave, if it was faster there (Wang et al. 2012, section 5.8;
 * daemon/sched/return_to_faster.h). */
#ifndef RM_LEADER_JOB_PLACES_H
#define RM_LEADER_JOB_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/state/state_index.h"

#define JOB_PLACES_MOST STATE_RATES_MAX /* of one job: the ones that it was on last */
/* A rate that was seen for a shorter time is no measurement: the times of reports are known to some
 * tenths of a second. */
#define JOB_PLACE_MEASURED_USEC 10000000u

/* A set of nodes that a job ran on, with as many ranks to a core on the fullest of them. */
struct job_place {
        uint64_t set; /* the same for the same ranks on the same nodes, whichever group is where */
        double share;
        double rate; /* steps a second */
        uint64_t usec; /* it was seen for so long */
        bool left; /* the job had to leave it: a node of it was drained, failed, or was lost */
        char **nodes; /* of each group, by its index; NULL: it is parked */
        size_t n_nodes;
        double logged_rate; /* as it is in the log; 0: it is not there */
};

struct job_places {
        struct job_place places[JOB_PLACES_MOST]; /* where it was last first */
        size_t n_places;
        bool here; /* it is at the first of them; false: it moves, or was not looked at yet */
        uint32_t attempt; /* of the job, when it was looked at */
        uint64_t next_move; /* State.next_move then */
        bool logged; /* what is in the log tells as much */
};

void job_places_finish(struct job_places *places);

/* Reads what an earlier leader has measured, as it is in the log. */
void job_places_load(struct job_places *places, const Rm__Job *job);
/* Has something been measured that the next leader should know? To be said once: the places count
 * as logged then. */
bool job_places_take_news(struct job_places *places);
bool job_place_measured(const struct job_place *place);
/* Packs the place for the log. The names stay the place's, and the list of them is the caller's to
 * free. */
void job_place_pack(const struct job_place *place, Rm__JobRate *ret);

/* The job is where it is now, with `share` ranks to a core on its fullest node (0: it moves). True:
 * that is another place than the last time. */
bool job_places_scan(struct job_places *places, const struct state_index *index, const Rm__Job *job, double share);

/* The place where the job is; NULL: it moves. */
struct job_place *job_places_here(struct job_places *places);

#endif
