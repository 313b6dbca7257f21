#include "daemon/sched/fold_turns.h"

#include <math.h>
#include <stdlib.h>

#include "common/util.h"
#include "placement/cost.h"

/* No node is given more ranks to a core than so many above what all would have alike: groups that
 * come there have to bear it too. */
#define UNEVEN_MOST 1.0
/* Rates waver: what a job bore when the group came it bears still. */
#define STAY_BONUS 1.15

struct fold_turns {
        double *bears;  /* each node: ranks to a core, as the jobs there that share first can bear; 0: there is none */
        uint32_t *load; /* each node: ranks that are there */
};

static void add_job(struct fold_turns *turns, const struct rm_job *job, bool first, double bears) {
        for (uint32_t g = 0; g < job->n_groups; g++) {
                int32_t node = job->groups[g].node;

                if (node < 0)
                        continue;
                turns->load[node] += job->groups[g].ranks;
                if (first)
                        turns->bears[node] = turns->bears[node] > 0 ? fmin(turns->bears[node], bears) : bears;
        }
}

struct fold_turns *fold_turns_create(const struct rm_snapshot *snapshot, const struct round_job *jobs) {
        struct fold_turns *turns = xcalloc(1, sizeof(*turns));
        bool any = false;

        turns->bears = xcalloc(snapshot->n_nodes + 1u, sizeof(*turns->bears));
        turns->load = xcalloc(snapshot->n_nodes + 1u, sizeof(*turns->load));
        for (uint32_t j = 0; jobs && j < snapshot->n_jobs; j++) {
                double bears = 1;

                bool first = job_runs(&snapshot->jobs[j]) && steps_above_goal(&jobs[j].steps, &bears);

                any |= first;
                add_job(turns, &snapshot->jobs[j], first, bears);
        }
        if (any)
                return turns;
        fold_turns_destroy(turns);
        return NULL;
}

void fold_turns_destroy(struct fold_turns *turns) {
        if (!turns)
                return;
        free(turns->bears);
        free(turns->load);
        free(turns);
}

uint32_t fold_turns_cores(const struct fold_turns *turns, uint32_t node, uint32_t real, uint32_t even) {
        uint32_t there = turns->load[node] < even ? turns->load[node] : even;

        return real > there ? real : there;
}

bool fold_turns_bears(const struct fold_turns *turns, uint32_t node, double ratio, double even_ratio, bool there) {
        double most = fmax(even_ratio, 1) + UNEVEN_MOST;
        double bears = turns->bears[node] * (there ? STAY_BONUS : 1);

        return ratio <= fmin(bears, most);
}
