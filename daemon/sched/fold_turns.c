#include "daemon/sched/fold_turns.h"

#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "placement/cost.h"

/* No node is given more ranks to a core than so many above what all would have alike: those who come there have to bear it too. */
#define UNEVEN_MOST 1.0
/* Rates waver: what a job bore when the group came it bears still. */
#define STAY_BONUS 1.15

struct fold_turns {
        enum steps_turn *turn; /* each job */
        double *bears;         /* each node: ranks to a core, as the jobs there that share first can bear; 0: there is none */
        bool *last;            /* each node: a job is there that shares last */
        uint32_t *load;        /* each node: ranks that are there */
};

static void add_job(struct fold_turns *turns, const struct rm_job *job, enum steps_turn turn, double bears) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node < 0)
                        continue;
                turns->load[node] += job->groups[g].ranks;
                turns->last[node] |= turn == STEPS_TURN_LAST;
                if (turn == STEPS_TURN_FIRST)
                        turns->bears[node] = turns->bears[node] > 0 ? fmin(turns->bears[node], bears) : bears;
        }
}

struct fold_turns *fold_turns_create(const struct rm_snapshot *snapshot, const struct round_job *jobs) {
        struct fold_turns *turns = xcalloc(1, sizeof(*turns));
        bool any = false;

        turns->turn = xcalloc(snapshot->n_jobs + 1u, sizeof(*turns->turn));
        turns->bears = xcalloc(snapshot->n_nodes + 1u, sizeof(*turns->bears));
        turns->last = xcalloc(snapshot->n_nodes + 1u, sizeof(*turns->last));
        turns->load = xcalloc(snapshot->n_nodes + 1u, sizeof(*turns->load));
        for (uint32_t j = 0; jobs && j < snapshot->n_jobs; j++) {
                double bears = 1;

                turns->turn[j] = job_runs(&snapshot->jobs[j]) ? steps_turn(&jobs[j].steps, &bears) : STEPS_TURN_ANY;
                any |= turns->turn[j] != STEPS_TURN_ANY;
                add_job(turns, &snapshot->jobs[j], turns->turn[j], bears);
        }
        if (any)
                return turns;
        fold_turns_destroy(turns);
        return NULL;
}

void fold_turns_destroy(struct fold_turns *turns) {
        if (!turns)
                return;
        free(turns->turn);
        free(turns->bears);
        free(turns->last);
        free(turns->load);
        free(turns);
}

uint32_t fold_turns_cores(const struct fold_turns *turns, uint32_t node, uint32_t real, uint32_t even) {
        uint32_t there = turns->load[node] < even ? turns->load[node] : even;

        return real > there ? real : there;
}

uint32_t fold_turns_rank(const struct fold_turns *turns, uint32_t job, uint32_t node, double ratio, double even_ratio, bool there) {
        double most = fmax(even_ratio, 1) + UNEVEN_MOST;
        double bears = turns->bears[node] * (there ? STAY_BONUS : 1);

        /* Who shares last himself is best off where the fewest do. */
        if (turns->turn[job] == STEPS_TURN_LAST || turns->last[node] || ratio > most)
                return 0;
        return ratio <= bears ? 2 : 1;
}
